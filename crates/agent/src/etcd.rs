// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A connection to an etcd server: translates the requests of a registration, and the answers. When it is dropped, the requests under way
//! and their answers are dropped with it. No timeouts: the registration has them.

use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, Error, EventType, GetOptions, KeyValue, PutOptions,
    Txn, TxnOp, TxnOpResponse, WatchOptions,
};
use onramp_clock::{
    registration::{Answer, Change, Expected, Key, Request, Text, Trouble},
    registry::MOST_NODES,
};
use tokio::{
    sync::mpsc::{self, UnboundedReceiver, UnboundedSender},
    task::JoinSet,
};

/// A connection.
pub struct Session {
    requests: UnboundedSender<Request>,
    answers: UnboundedReceiver<Answer>,
    /// Ends the task when dropped.
    _task: JoinSet<()>,
}

impl Session {
    /// Connects. `prefix`: that of the fleet's keys.
    pub fn begin(url: String, options: ConnectOptions, prefix: String) -> Session {
        let (requests, asked) = mpsc::unbounded_channel();
        let (answer, answers) = mpsc::unbounded_channel();
        let mut task = JoinSet::new();
        task.spawn(async move {
            match Client::connect([url], Some(options)).await {
                Ok(client) => {
                    let server = Server {
                        client,
                        prefix,
                        answers: answer,
                    };
                    server.say(Answer::Connected);
                    server.serve(asked).await;
                }
                Err(error) => drop(answer.send(Answer::Failed(trouble(&error)))),
            }
        });
        Session {
            requests,
            answers,
            _task: task,
        }
    }

    /// Sends a request.
    pub fn ask(&self, request: Request) {
        // Without receiver, the session has failed, and said so.
        let _ = self.requests.send(request);
    }

    /// The next answer of a session, if there is one.
    pub async fn answer(session: &mut Option<Session>) -> Answer {
        let Some(session) = session else {
            return std::future::pending().await;
        };
        let ended = || failed("the connection has ended");
        session.answers.recv().await.unwrap_or_else(ended)
    }
}

/// The server of a session.
#[derive(Clone)]
struct Server {
    client: Client,
    prefix: String,
    answers: UnboundedSender<Answer>,
}

impl Server {
    fn say(&self, answer: Answer) {
        // Without receiver, the session is over.
        let _ = self.answers.send(answer);
    }

    /// Serves requests side by side.
    async fn serve(self, mut asked: UnboundedReceiver<Request>) {
        let mut tasks = JoinSet::new();
        let mut renewals: Option<(i64, UnboundedSender<()>)> = None;
        while let Some(request) = asked.recv().await {
            while tasks.try_join_next().is_some() {}
            let server = self.clone();
            match request {
                Request::KeepAlive { lease } => match &renewals {
                    Some((kept, renew)) if *kept == lease => drop(renew.send(())),
                    _ => {
                        let (renew, renewed) = mpsc::unbounded_channel();
                        renewals = Some((lease, renew));
                        tasks.spawn(async move { server.keep(lease, renewed).await });
                    }
                },
                Request::Watch { from } => drop(tasks.spawn(server.watch(from))),
                request => {
                    tasks.spawn(async move {
                        let answer = server.clone().answer(request).await;
                        server.say(answer.unwrap_or_else(|error| Answer::Failed(trouble(&error))));
                    });
                }
            }
        }
    }

    async fn answer(mut self, request: Request) -> Result<Answer, Error> {
        match request {
            Request::Grant { ttl_s } => {
                let granted = self.client.lease_grant(ttl_s, None).await?;
                Ok(Answer::Granted {
                    lease: granted.id(),
                    ttl_s: granted.ttl(),
                })
            }
            Request::Claim {
                name,
                value,
                lease,
                expected,
            } => self.claim(&name, value, lease, expected).await,
            Request::Delete { name, modified } => {
                let key = self.key(&name);
                let unchanged = Compare::mod_revision(key.clone(), CompareOp::Equal, modified);
                let delete = Txn::new()
                    .when([unchanged])
                    .and_then([TxnOp::delete(key, None)]);
                self.client.txn(delete).await?;
                Ok(Answer::Deleted)
            }
            Request::Read => self.read().await,
            Request::Revoke { lease } => {
                self.client.lease_revoke(lease).await?;
                Ok(Answer::Revoked)
            }
            Request::Connect { .. } | Request::KeepAlive { .. } | Request::Watch { .. } => {
                unreachable!("they are served elsewhere")
            }
        }
    }

    async fn claim(
        &mut self,
        name: &Text,
        value: Text,
        lease: i64,
        expected: Expected,
    ) -> Result<Answer, Error> {
        let key = self.key(name);
        let condition = match expected {
            Expected::Absent => Compare::create_revision(key.clone(), CompareOp::Equal, 0),
            Expected::Modified(revision) => {
                Compare::mod_revision(key.clone(), CompareOp::Equal, revision)
            }
        };
        let with_lease = PutOptions::new().with_lease(lease);
        let txn = Txn::new()
            .when([condition])
            .and_then([TxnOp::put(key.clone(), value.0, Some(with_lease))])
            .or_else([TxnOp::get(key, None)]);
        let answer = self.client.txn(txn).await?;
        if answer.succeeded() {
            let revision = answer.header().map_or(0, |header| header.revision());
            return Ok(Answer::Claimed { revision });
        }
        Ok(match answer.op_responses().into_iter().next() {
            Some(TxnOpResponse::Get(got)) => {
                Answer::Held(got.kvs().first().and_then(|found| self.found(found)))
            }
            _ => failed("the answer lacks the requested key"),
        })
    }

    async fn read(&mut self) -> Result<Answer, Error> {
        let all = GetOptions::new()
            .with_prefix()
            .with_limit(MOST_NODES as i64);
        let got = self.client.get(self.prefix.as_str(), Some(all)).await?;
        Ok(Answer::Read {
            revision: got.header().map_or(0, |header| header.revision()),
            keys: got.kvs().iter().filter_map(|key| self.found(key)).collect(),
        })
    }

    /// Renews a lease at once and then for each message.
    async fn keep(mut self, lease: i64, mut renewals: UnboundedReceiver<()>) {
        let (mut keeper, mut answers) = match self.client.lease_keep_alive(lease).await {
            Ok(kept) => kept,
            Err(Error::LeaseKeepAliveError(_)) => return self.say(Answer::Expired),
            Err(error) => return self.say(Answer::Failed(trouble(&error))),
        };
        self.say(Answer::Kept);
        loop {
            let answer = tokio::select! {
                renewal = renewals.recv() => {
                    if renewal.is_none() {
                        return;
                    }
                    match keeper.keep_alive().await {
                        Ok(()) => continue,
                        Err(error) => Answer::Failed(trouble(&error)),
                    }
                }
                answer = answers.message() => match answer {
                    Ok(Some(answer)) if answer.ttl() > 0 => Answer::Kept,
                    Ok(_) => Answer::Expired,
                    Err(error) => Answer::Failed(trouble(&error)),
                },
            };
            let is_over = answer != Answer::Kept;
            self.say(answer);
            if is_over {
                return;
            }
        }
    }

    async fn watch(mut self, from: i64) {
        let options = WatchOptions::new().with_prefix().with_start_revision(from);
        let mut changes = match self.client.watch(self.prefix.as_str(), Some(options)).await {
            Ok(changes) => changes,
            Err(error) => return self.say(Answer::Failed(trouble(&error))),
        };
        self.say(Answer::Watching);
        loop {
            match changes.message().await {
                Ok(Some(change)) if !change.canceled() => {
                    let events = change.events().iter();
                    let changes = events.filter_map(|event| self.change(event)).collect();
                    self.say(Answer::Changed(changes));
                }
                Ok(_) => return self.say(failed("etcd has ended the watch")),
                Err(error) => return self.say(Answer::Failed(trouble(&error))),
            }
        }
    }

    fn key(&self, name: &Text) -> Vec<u8> {
        [self.prefix.as_bytes(), &name.0].concat()
    }

    /// A key of the fleet.
    fn found(&self, key: &KeyValue) -> Option<Key> {
        Some(Key {
            name: Text(key.key().strip_prefix(self.prefix.as_bytes())?.to_vec()),
            value: Text(key.value().to_vec()),
            created: key.create_revision(),
            modified: key.mod_revision(),
            lease: key.lease(),
        })
    }

    fn change(&self, event: &etcd_client::Event) -> Option<Change> {
        let key = self.found(event.kv()?)?;
        Some(match event.event_type() {
            EventType::Put => Change::Put(key),
            EventType::Delete => Change::Deleted {
                name: key.name,
                revision: key.modified,
            },
        })
    }
}

fn failed(text: &str) -> Answer {
    Answer::Failed(Trouble::Passing(text.to_owned()))
}

fn trouble(error: &Error) -> Trouble {
    use tonic::Code;
    let Error::GRpcStatus(status) = error else {
        return Trouble::Passing(error.to_string());
    };
    let text = format!("{} ({})", status.message(), status.code());
    // etcd reports a wrong password as InvalidArgument, and a user as FailedPrecondition if authentication is
    // off.
    match status.code() {
        Code::InvalidArgument
        | Code::FailedPrecondition
        | Code::PermissionDenied
        | Code::Unauthenticated => Trouble::Lasting(text),
        _ => Trouble::Passing(text),
    }
}
