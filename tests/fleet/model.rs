// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! The model of etcd, against which fleets are simulated, answers as etcd does. The same random requests go
//! to both, to etcd over the daemon's own connection.
use std::collections::BTreeMap;

use etcd_client::ConnectOptions;
use onramp_agent::etcd::Session;
use onramp_clock::registration::{Answer, Change, Expected, Key, Request, Text, Trouble};
use onramp_fleets::etcd::Etcd;

use crate::world::Fleet;

const REQUESTS: usize = 1_000;
const NAMES: [&str; 3] = ["a", "b", "c"];
/// Longer than the test takes.
const TTL_S: i64 = 600;

/// The model, and which of its leases is which of etcd's.
#[derive(Default)]
struct Model {
    etcd: Etcd,
    leases: BTreeMap<i64, i64>,
    revoked: Vec<i64>,
    random: u64,
}

impl Model {
    fn below(&mut self, n: usize) -> usize {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) as usize % n
    }

    /// A request with the model's leases.
    fn request(&mut self) -> Request {
        let name = Text::from(NAMES[self.below(NAMES.len())]);
        let leases: Vec<i64> = self.leases.keys().copied().collect();
        let lease = leases[self.below(leases.len())];
        let key = self.etcd.keys().find(|key| key.name == name);
        let modified = key.map_or(0, |key| key.modified) - self.below(5) as i64 / 4;
        match self.below(12) {
            0 => Request::Grant { ttl_s: TTL_S },
            1 => Request::Read,
            2 if lease != 0 => Request::Revoke { lease },
            3 | 4 if lease != 0 && !self.revoked.contains(&lease) => Request::KeepAlive { lease },
            5 | 6 => Request::Delete { name, modified },
            n => Request::Claim {
                value: Text(vec![b'0' + n as u8; n]),
                expected: match n % 2 {
                    0 => Expected::Absent,
                    _ => Expected::Modified(modified),
                },
                name,
                lease,
            },
        }
    }

    fn answer(&mut self, request: &Request) -> Answer {
        if let Request::Revoke { lease } = request {
            self.revoked.push(*lease);
        }
        self.etcd.operate(0, request, &mut |_, _| Some(0))
    }

    fn key(&self, key: Key) -> Key {
        let lease = self.leases[&key.lease];
        Key { lease, ..key }
    }

    /// The model's answer with etcd's leases.
    fn translated(&mut self, answer: Answer, etcds: &Answer) -> Answer {
        match (answer, etcds) {
            (Answer::Granted { lease, ttl_s }, Answer::Granted { lease: real, .. }) => {
                self.leases.insert(lease, *real);
                let lease = *real;
                Answer::Granted { lease, ttl_s }
            }
            (Answer::Held(key), _) => Answer::Held(key.map(|key| self.key(key))),
            (Answer::Read { revision, keys }, _) => {
                let keys = keys.into_iter().map(|key| self.key(key)).collect();
                Answer::Read { revision, keys }
            }
            // etcd says it in its own words.
            (Answer::Failed(Trouble::Passing(_)), Answer::Failed(Trouble::Passing(text))) => {
                Answer::Failed(Trouble::Passing(text.clone()))
            }
            (answer, _) => answer,
        }
    }

    /// A request with etcd's leases.
    fn real(&self, request: Request) -> Request {
        match request {
            Request::KeepAlive { lease } => Request::KeepAlive {
                lease: self.leases[&lease],
            },
            Request::Revoke { lease } => Request::Revoke {
                lease: self.leases[&lease],
            },
            Request::Claim {
                name,
                value,
                lease,
                expected,
            } => Request::Claim {
                name,
                value,
                lease: self.leases[&lease],
                expected,
            },
            request => request,
        }
    }

    /// All that a watch from the beginning shows.
    fn changes(&mut self) -> Vec<Change> {
        let requests = [Request::Connect { endpoint: 0 }, Request::Watch { from: 2 }];
        for request in requests {
            self.etcd.ask(0, 0, request, Some(0));
        }
        let answers = self.etcd.run(0, &mut |_, _| Some(0));
        let changes = answers.into_iter().filter_map(|(_, answer)| match answer {
            Answer::Changed(changes) => Some(changes),
            _ => None,
        });
        let translated = |change| match change {
            Change::Put(key) => Change::Put(self.key(key)),
            change => change,
        };
        changes.flatten().map(translated).collect()
    }
}

/// etcd's answer; changes that its watch shows go to `changes`.
async fn answer(session: &mut Option<Session>, changes: &mut Vec<Change>) -> Answer {
    loop {
        match Session::answer(session).await {
            Answer::Changed(some) => changes.extend(some),
            answer => return answer,
        }
    }
}

#[test]
fn the_model_answers_as_etcd_does() {
    let fleet = Fleet::empty(36, &[]);
    let url = fleet.etcd.url.clone();
    fleet.etcd.ask(None, async |_| {
        let prefix = "/onramp/default/members/".to_owned();
        let begun = Session::begin(url, ConnectOptions::new(), prefix);
        let (mut session, mut changes) = (Some(begun), vec![]);
        assert_eq!(answer(&mut session, &mut changes).await, Answer::Connected);
        let ask = |session: &Option<Session>, request| session.as_ref().map(|s| s.ask(request));
        ask(&session, Request::Watch { from: 2 });
        assert_eq!(answer(&mut session, &mut changes).await, Answer::Watching);
        let mut model = Model::default();
        model.leases.insert(0, 0);
        for n in 0..REQUESTS {
            let request = model.request();
            ask(&session, model.real(request.clone()));
            let real = answer(&mut session, &mut changes).await;
            let modelled = model.answer(&request);
            let modelled = model.translated(modelled, &real);
            assert_eq!(modelled, real, "the answer to request {n}: {request:?}");
        }
        let modelled = model.changes();
        while changes.len() < modelled.len() {
            match Session::answer(&mut session).await {
                Answer::Changed(some) => changes.extend(some),
                answer => panic!("{answer:?}"),
            }
        }
        assert_eq!(modelled, changes);
        println!(
            "{REQUESTS} answers and {} changes are etcd's",
            changes.len()
        );
    });
}
