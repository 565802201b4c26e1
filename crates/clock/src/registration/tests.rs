// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
use super::*;
use crate::roster::Roster;

const LEASE: i64 = 77;

fn own() -> SocketAddr {
    "10.0.0.1:5198".parse().expect("an address")
}

fn config() -> Config {
    Config {
        endpoints: vec!["http://a:2379".to_owned(), "http://b:2379".to_owned()],
        fleet: "f".to_owned(),
        node: "n1".to_owned(),
        own: own(),
    }
}

fn key(name: &str, address: &str, created: i64, lease: i64) -> Key {
    let record = Record::own(address.parse().expect("an address"));
    Key {
        name: Text::from(name),
        value: Text(serde_json::to_vec(&record).expect("plain data")),
        created,
        modified: created,
        lease,
    }
}

fn other(created: i64) -> Key {
    key("n2", "10.0.0.2:5198", created, 5)
}

fn deleted(name: &str, revision: i64) -> Change {
    Change::Deleted {
        name: Text::from(name),
        revision,
    }
}

/// A registration, and what it has done.
struct Host {
    registration: Registration,
    now: i64,
    requests: Vec<Request>,
    rosters: Vec<Roster>,
    news: Vec<News>,
    shown: status::Fleet,
    is_over: bool,
}

impl Host {
    fn new() -> Host {
        let mut host = Host {
            registration: Registration::new(config(), 0),
            now: 0,
            requests: vec![],
            rosters: vec![],
            news: vec![],
            shown: status::Fleet::default(),
            is_over: false,
        };
        host.take();
        host
    }

    /// Claims its key at revision 11, and reads these.
    fn claims(&mut self, keys: Vec<Key>) {
        self.answers([
            Answer::Connected,
            Answer::Granted {
                lease: LEASE,
                ttl_s: LEASE_S,
            },
            Answer::Claimed { revision: 11 },
            Answer::Read { revision: 12, keys },
        ]);
    }

    /// Registered at revision 11, beside an older node.
    fn member() -> Host {
        let mut host = Host::new();
        host.claims(vec![key("n1", "10.0.0.1:5198", 11, LEASE), other(9)]);
        host.answers([Answer::Watching]);
        host
    }

    fn handle(&mut self, event: Event) {
        self.registration.handle(self.now, event);
        self.take();
    }

    fn answers(&mut self, answers: impl IntoIterator<Item = Answer>) {
        for answer in answers {
            self.handle(Event::Answer(answer));
        }
    }

    fn take(&mut self) {
        while let Some(action) = self.registration.next_action() {
            match action {
                Action::Ask(request) => self.requests.push(request),
                Action::Publish(roster) => self.rosters.push(roster),
                Action::Say(news) => self.news.push(news),
                Action::Show(shown) => self.shown = shown,
                Action::Disconnect => self.requests.clear(),
                Action::End => self.is_over = true,
            }
        }
    }

    /// Lets time pass; etcd renews the lease.
    fn pass(&mut self, time: i64) {
        self.pass_with(time, false, true);
    }

    fn pass_with(&mut self, time: i64, unfit: bool, answers: bool) {
        let end = self.now + time;
        while self.registration.wakes_at() <= end {
            self.now = self.registration.wakes_at();
            self.handle(Event::Time { unfit });
            let renewal = Request::KeepAlive { lease: LEASE };
            if answers && self.requests.last() == Some(&renewal) {
                self.requests.pop();
                self.answers([Answer::Kept]);
            }
        }
        self.now = end;
    }

    fn leader(&self) -> Option<SocketAddr> {
        self.rosters.last().expect("one is published").leader
    }
}

#[test]
fn a_session_leads_to_a_roster() {
    let host = Host::member();
    let names: Vec<String> = host.requests.iter().map(|r| format!("{r:?}")).collect();
    for (name, request) in ["Connect", "Grant", "Claim", "Read", "Watch { from: 13 }"]
        .iter()
        .zip(&names)
    {
        assert!(request.starts_with(name), "{request}");
    }
    assert_eq!(host.rosters.len(), 1);
    assert_eq!(host.leader(), Some("10.0.0.2:5198".parse().unwrap()));
    assert_eq!(host.news, [News::Joined("http://a:2379".to_owned())]);
    assert!(host.shown.connected && host.shown.nodes[0].name == "n2");
}

#[test]
fn changes_are_published_when_nothing_changes_for_a_moment() {
    let mut host = Host::member();
    host.answers([Answer::Changed(vec![deleted("n2", 13)])]);
    host.pass(60 * MS);
    host.answers([Answer::Changed(vec![Change::Put(other(14))])]);
    host.pass(60 * MS);
    assert_eq!(host.rosters.len(), 1, "not yet");
    host.pass(60 * MS);
    assert_eq!(host.rosters.len(), 2);
    assert_eq!(host.leader(), Some(own()));
    assert_eq!(host.rosters[1].members.all().len(), 2);
    // In a fleet that changes all the time, nevertheless.
    for n in 3..9 {
        let (name, address) = (format!("n{n}"), format!("10.0.0.{n}:5198"));
        let joined = key(&name, &address, 12 + n, 5);
        host.answers([Answer::Changed(vec![Change::Put(joined)])]);
        host.pass(90 * MS);
    }
    assert_eq!(host.rosters.len(), 3);
    assert_eq!(host.rosters[2].members.all().len(), 2 + 6);
}

#[test]
fn a_silent_server_is_left_for_the_next_one() {
    let mut host = Host::member();
    host.pass_with(SILENT_NS + PAUSE_NS, false, false);
    assert_eq!(host.requests, [Request::Connect { endpoint: 1 }]);
    assert!(!host.shown.connected && host.shown.state.contains("http://a:2379"));
    let certain: Vec<bool> = host.rosters.iter().map(|roster| roster.certain).collect();
    assert_eq!(certain, [true, false]);
    // For an hour: no more rosters, and a complaint each minute.
    host.pass_with(3600 * 1_000 * MS, false, false);
    assert_eq!(host.rosters.len(), 2);
    assert!((55..=61).contains(&host.news.len()), "{}", host.news.len());
    assert!(host.shown.failures > 1_000);
    // Its lease has ended.
    let wakes = host.registration.wakes_at() - host.now;
    host.pass_with(wakes, false, false);
    while host.requests.is_empty() {
        host.pass_with(MS, false, false);
    }
    host.answers([Answer::Connected, Answer::Expired]);
    assert_eq!(
        host.requests.last(),
        Some(&Request::Grant { ttl_s: LEASE_S })
    );
}

#[test]
fn a_key_that_vanishes_before_it_is_taken_over_is_claimed_again() {
    let mut host = Host::new();
    let granted = Answer::Granted {
        lease: LEASE,
        ttl_s: LEASE_S,
    };
    let left = key("n1", "10.0.0.1:5198", 3, 6);
    host.answers([Answer::Connected, granted, Answer::Held(Some(left))]);
    let claims = |host: &Host, wanted: Expected| matches!(host.requests.last(), Some(Request::Claim { expected, .. }) if *expected == wanted);
    assert!(claims(&host, Expected::Modified(3)));
    host.answers([Answer::Held(None)]);
    assert!(claims(&host, Expected::Absent));
}

#[test]
fn a_key_that_vanishes_before_all_are_read_is_noticed() {
    let mut host = Host::new();
    host.claims(vec![other(9)]);
    assert!(
        host.shown.state.contains("another client"),
        "{:?}",
        host.shown
    );
}

#[test]
fn a_starved_leader_creates_its_key_anew() {
    let mut host = Host::member();
    host.pass_with(5 * STARVED_NS, true, true);
    assert_eq!(host.requests.len(), 5, "it does not lead");
    host.answers([Answer::Changed(vec![Change::Put(other(13))])]);
    host.pass_with(STARVED_NS / 2, true, true);
    assert_eq!(host.requests.len(), 5, "not yet");
    host.pass_with(STARVED_NS, true, true);
    let delete = Request::Delete {
        name: Text::from("n1"),
        modified: 11,
    };
    assert_eq!(host.requests.last(), Some(&delete));
    // The watch may be ahead of the answers.
    host.answers([
        Answer::Changed(vec![deleted("n1", 14)]),
        Answer::Deleted,
        Answer::Claimed { revision: 15 },
        Answer::Changed(vec![Change::Put(key("n1", "10.0.0.1:5198", 15, LEASE))]),
    ]);
    host.pass_with(200 * MS, true, true);
    assert_eq!(host.leader(), Some("10.0.0.2:5198".parse().unwrap()));
    assert!(host.shown.connected && host.shown.resignations == 1);
    assert!(host.rosters.iter().all(|r| r.members.all().len() == 2));
    // It leads again, but has just resigned.
    host.answers([Answer::Changed(vec![Change::Put(other(16))])]);
    host.pass_with(RESIGN_NS / 2, true, true);
    assert_eq!(host.shown.resignations, 1);
    assert!(matches!(host.requests.last(), Some(Request::Claim { .. })));
    while !matches!(host.requests.last(), Some(Request::Delete { .. })) {
        host.pass_with(100 * MS, true, true);
    }
    assert!(host.now < 3 * RESIGN_NS / 2);
}

#[test]
fn a_key_that_vanishes_while_it_is_created_anew_is_noticed() {
    let mut host = Host::member();
    host.answers([Answer::Changed(vec![Change::Put(other(13))])]);
    host.pass_with(2 * STARVED_NS, true, true);
    host.answers([
        Answer::Deleted,
        Answer::Changed(vec![deleted("n1", 14), deleted("n1", 16)]),
        Answer::Claimed { revision: 15 },
    ]);
    assert!(!host.shown.connected, "{:?}", host.shown);
}

#[test]
fn leaving_ends_the_lease() {
    let mut host = Host::member();
    host.handle(Event::Leave);
    assert_eq!(
        host.requests.last(),
        Some(&Request::Revoke { lease: LEASE })
    );
    assert!(!host.is_over);
    host.answers([Answer::Changed(vec![deleted("n1", 13)]), Answer::Revoked]);
    assert!(host.is_over);
    // Without answer, or without a connection.
    let mut host = Host::member();
    host.handle(Event::Leave);
    host.pass_with(SILENT_NS, false, false);
    assert!(host.is_over && matches!(host.news.last(), Some(News::CannotLeave(_))));
    let mut host = Host::new();
    host.handle(Event::Leave);
    assert!(host.is_over);
}
