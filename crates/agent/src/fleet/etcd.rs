//! A fleet in etcd: this host registers, keeps its lease alive, watches the other nodes and passes every
//! change to the synchronisation. `onramp_clock::registry` defines the keys and values.
//!
//! A thread with its own runtime talks to one endpoint at a time. Any error ends the session. The next
//! session, at the next endpoint, reads the state of the lease, the key and the fleet again. Between
//! sessions the synchronisation uses the last known fleet.

use std::{
    net::SocketAddr,
    sync::{
        mpsc::{self, Sender},
        Arc, Mutex,
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use anyhow::{bail, Result};
use etcd_client::{
    Client, Compare, CompareOp, ConnectOptions, EventType, GetOptions, KeyValue,
    LeaseKeepAliveStream, LeaseKeeper, PutOptions, Txn, TxnOp, TxnOpResponse, WatchOptions,
};
use onramp_clock::{
    registry::{Found, Node, Record, Registry, MOST_NODES},
    roster::Roster,
    status,
};
use tokio::{sync::oneshot, time::MissedTickBehavior};
use tracing::{error, info, warn};

/// A node that is silent for this time is removed, s. By default etcd grants no shorter lease.
const LEASE_S: i64 = 2;
/// Shortest time between two passed changes.
const TICK: Duration = Duration::from_millis(100);
/// Ticks between two renewals of the lease.
const TICKS_A_KEEPALIVE: u32 = 4;
/// A server that does not answer for this time counts as dead.
const SILENT: Duration = Duration::from_millis(1_500);
/// Pause between two sessions.
const PAUSE: Duration = Duration::from_millis(250);
/// Most that a lease can end after its nominal time.
const LATE: Duration = Duration::from_millis(1_500);
/// Time between two log messages about an etcd that does not answer.
const COMPLAINT: Duration = Duration::from_secs(60);

/// The options of a registration.
pub struct Config {
    /// URLs.
    pub endpoints: Vec<String>,
    pub options: ConnectOptions,
    pub fleet: String,
    pub node: String,
    pub own: SocketAddr,
}

/// A registration; it ends when dropped.
pub struct Etcd {
    told: Arc<Mutex<status::Fleet>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Why a session ended.
#[derive(Debug, thiserror::Error)]
enum Trouble {
    /// It can pass without action.
    #[error("{0}")]
    Passing(String),
    /// An operator has to act.
    #[error("{0}")]
    Lasting(String),
}

impl From<etcd_client::Error> for Trouble {
    fn from(error: etcd_client::Error) -> Trouble {
        use tonic::Code;
        match &error {
            etcd_client::Error::GRpcStatus(status) => {
                let text = format!("{} ({})", status.message(), status.code());
                // etcd reports a wrong password as InvalidArgument, and a user as FailedPrecondition if
                // authentication is off.
                match status.code() {
                    Code::InvalidArgument
                    | Code::FailedPrecondition
                    | Code::PermissionDenied
                    | Code::Unauthenticated => Trouble::Lasting(text),
                    _ => Trouble::Passing(text),
                }
            }
            _ => Trouble::Passing(error.to_string()),
        }
    }
}

impl Etcd {
    /// Registers, and sends every change of the fleet to `rosters`. Retries for ever if etcd does not answer.
    ///
    /// # Errors
    /// Another node has the name, or etcd refuses this host.
    pub fn start(config: Config, rosters: Sender<Roster>) -> Result<Etcd> {
        let told = Arc::new(Mutex::new(status::Fleet {
            name: config.fleet.clone(),
            node: config.node.clone(),
            state: "connecting".to_owned(),
            ..status::Fleet::default()
        }));
        let (stop, stopped) = oneshot::channel();
        let (first, outcome) = mpsc::channel();
        let mut member = Member {
            key: format!("/onramp/{}/members/{}", config.fleet, config.node),
            prefix: format!("/onramp/{}/members/", config.fleet),
            registry: Registry::new(config.own),
            client: None,
            lease: None,
            lasts: Duration::ZERO,
            complained: None,
            was_registered: false,
            is_news: false,
            sent: None,
            told: Arc::clone(&told),
            rosters,
            first: Some(first),
            config,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let run = move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = member.stay() => {}
                }
                member.leave().await;
            });
        };
        let thread = thread::Builder::new().name("etcd".into()).spawn(run)?;
        let etcd = Etcd {
            told,
            stop: Some(stop),
            thread: Some(thread),
        };
        match outcome.recv() {
            Ok(Err(Trouble::Lasting(why))) => bail!("{why}"),
            Ok(Err(Trouble::Passing(why))) => {
                warn!("etcd: {why}; there is no fleet until etcd answers; retrying");
            }
            Ok(Ok(())) | Err(_) => {}
        }
        Ok(etcd)
    }

    /// The fleet for the status.
    pub fn told(&self) -> status::Fleet {
        self.told.lock().expect("the thread does not panic").clone()
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// This node.
struct Member {
    config: Config,
    key: String,
    prefix: String,
    registry: Registry,
    /// Client of the present session.
    client: Option<Client>,
    lease: Option<i64>,
    /// Duration of the lease that etcd granted.
    lasts: Duration,
    /// Whether this process has had its key.
    was_registered: bool,
    /// Whether the registry has changed since it was last published.
    is_news: bool,
    /// The roster that was sent last.
    sent: Option<Roster>,
    told: Arc<Mutex<status::Fleet>>,
    rosters: Sender<Roster>,
    /// When the last message about a lost etcd was logged.
    complained: Option<Instant>,
    /// Takes the outcome of the first session.
    first: Option<Sender<Result<(), Trouble>>>,
}

/// The answer, or an error after [`SILENT`].
async fn soon<T>(
    answer: impl std::future::Future<Output = Result<T, etcd_client::Error>>,
) -> Result<T, Trouble> {
    match tokio::time::timeout(SILENT, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(silent()),
    }
}

fn silent() -> Trouble {
    Trouble::Passing(format!("no answer in {} s", SILENT.as_secs_f64()))
}

impl Member {
    /// Keeps the registration for ever, at one endpoint after the other.
    async fn stay(&mut self) {
        let endpoints = self.config.endpoints.clone();
        for url in endpoints.iter().cycle() {
            let Err(trouble) = self.session(url).await;
            self.lost(url, trouble);
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Ends the lease, so that the others need not wait for its end.
    async fn leave(&mut self) {
        if let (Some(client), Some(lease)) = (&mut self.client, self.lease) {
            if let Err(trouble) = soon(client.lease_revoke(lease)).await {
                warn!("etcd: cannot leave the fleet now; this host's lease ends within {LEASE_S} s: {trouble}");
            }
        }
    }

    async fn session(&mut self, url: &str) -> Result<std::convert::Infallible, Trouble> {
        let options = Some(self.config.options.clone());
        let mut client = soon(Client::connect([url], options)).await?;
        let (mut keeper, mut answers) = self.lease(&mut client).await?;
        self.client = Some(client.clone());
        self.register(&mut client, &mut keeper).await?;
        let revision = self.read(&mut client).await?;
        let watch = WatchOptions::new()
            .with_prefix()
            .with_start_revision(revision + 1);
        let mut changes = soon(client.watch(self.prefix.as_str(), Some(watch))).await?;
        self.connected(url);

        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut tick, mut answered) = (0, Instant::now());
        loop {
            tokio::select! {
                _ = ticks.tick() => {
                    self.publish();
                    tick = (tick + 1) % TICKS_A_KEEPALIVE;
                    if tick == 0 {
                        keeper.keep_alive().await?;
                    }
                    if answered.elapsed() > SILENT {
                        return Err(silent());
                    }
                }
                answer = answers.message() => match answer? {
                    Some(answer) if answer.ttl() > 0 => answered = Instant::now(),
                    _ => {
                        self.lease = None;
                        return Err(Trouble::Passing("the lease of this host has ended".to_owned()));
                    }
                },
                change = changes.message() => match change? {
                    Some(change) if !change.canceled() => {
                        for event in change.events() {
                            self.changed(event)?;
                        }
                    }
                    _ => return Err(Trouble::Passing("etcd has ended the watch".to_owned())),
                },
            }
        }
    }

    /// The lease of the last session if it is still valid, else a new one.
    async fn lease(
        &mut self,
        client: &mut Client,
    ) -> Result<(LeaseKeeper, LeaseKeepAliveStream), Trouble> {
        if let Some(lease) = self.lease {
            match tokio::time::timeout(SILENT, client.lease_keep_alive(lease)).await {
                Err(_) => return Err(silent()),
                // The lease has ended.
                Ok(Err(etcd_client::Error::LeaseKeepAliveError(_))) => self.lease = None,
                Ok(kept) => return Ok(kept?),
            }
        }
        let granted = soon(client.lease_grant(LEASE_S, None)).await?;
        self.lease = Some(granted.id());
        self.lasts = Duration::from_secs(granted.ttl().unsigned_abs());
        soon(client.lease_keep_alive(granted.id())).await
    }

    /// Creates this host's key. The key that a former process of this host left behind is taken over at
    /// once: this process could bind its address, so the former one has ended.
    async fn register(
        &mut self,
        client: &mut Client,
        keeper: &mut LeaseKeeper,
    ) -> Result<(), Trouble> {
        let since = Instant::now();
        let mut absent = Compare::create_revision(self.key.as_str(), CompareOp::Equal, 0);
        loop {
            let Some(holder) = self.put_if(client, absent.clone()).await? else {
                self.was_registered = true;
                return Ok(());
            };
            if Some(holder.lease()) == self.lease {
                return Ok(());
            }
            let record: Option<Record> = serde_json::from_slice(holder.value()).ok();
            let address = record.map(|record| record.address);
            let is_left = !self.was_registered && address == Some(self.config.own);
            absent = if is_left || holder.lease() == 0 {
                let seen = holder.mod_revision();
                Compare::mod_revision(self.key.as_str(), CompareOp::Equal, seen)
            } else if since.elapsed() > self.lasts + LATE {
                let address = address.map_or("an unreadable address".into(), |a| a.to_string());
                return Err(Trouble::Lasting(format!(
                    "node {} of fleet {} already runs at {address}; use another name with --node",
                    self.config.node, self.config.fleet
                )));
            } else {
                tokio::time::sleep(PAUSE).await;
                keeper.keep_alive().await?;
                Compare::create_revision(self.key.as_str(), CompareOp::Equal, 0)
            };
        }
    }

    /// Writes this host's key if the present one is as `expected`; else returns the present one.
    async fn put_if(
        &self,
        client: &mut Client,
        expected: Compare,
    ) -> Result<Option<KeyValue>, Trouble> {
        let record = serde_json::to_vec(&Record::own(self.config.own)).expect("it is plain data");
        let with_lease = PutOptions::new().with_lease(self.lease.unwrap_or(0));
        let txn = Txn::new()
            .when([expected])
            .and_then([TxnOp::put(self.key.as_str(), record, Some(with_lease))])
            .or_else([TxnOp::get(self.key.as_str(), None)]);
        let answer = soon(client.txn(txn)).await?;
        if answer.succeeded() {
            return Ok(None);
        }
        match answer.op_responses().into_iter().next() {
            Some(TxnOpResponse::Get(mut got)) => Ok(got.take_kvs().pop()),
            _ => Err(Trouble::Passing(
                "the answer lacks the requested key".to_owned(),
            )),
        }
    }

    /// Reads all keys; returns their revision.
    async fn read(&mut self, client: &mut Client) -> Result<i64, Trouble> {
        let all = GetOptions::new()
            .with_prefix()
            .with_limit(MOST_NODES as i64);
        let got = soon(client.get(self.prefix.as_str(), Some(all))).await?;
        let revision = got.header().map_or(0, |header| header.revision());
        self.registry = Registry::new(self.config.own);
        self.is_news = true;
        for found in got.kvs() {
            self.found(found);
        }
        Ok(revision)
    }

    fn found(&mut self, key: &KeyValue) {
        if let Some(name) = key.key().strip_prefix(self.prefix.as_bytes()) {
            let found = Found {
                value: key.value(),
                created: key.create_revision(),
                lease: key.lease(),
            };
            self.registry.put(name, found);
        }
    }

    fn changed(&mut self, event: &etcd_client::Event) -> Result<(), Trouble> {
        let Some(key) = event.kv() else { return Ok(()) };
        self.is_news = true;
        let is_gone = event.event_type() == EventType::Delete;
        match key.key().strip_prefix(self.prefix.as_bytes()) {
            Some(name) if is_gone => self.registry.remove(name),
            _ => self.found(key),
        }
        let is_own = key.key() == self.key.as_bytes();
        if is_own && (is_gone || Some(key.lease()) != self.lease) {
            return Err(Trouble::Passing(
                "another client changed or removed the key of this host".to_owned(),
            ));
        }
        Ok(())
    }

    fn connected(&mut self, url: &str) {
        info!(
            "etcd: {url} has registered {} in fleet {}",
            self.config.node, self.config.fleet
        );
        self.publish();
        self.told(|told| {
            told.connected = true;
            told.state = format!("connected to {url}");
        });
        self.complained = None;
        if let Some(first) = self.first.take() {
            let _ = first.send(Ok(()));
        }
    }

    fn lost(&mut self, url: &str, trouble: Trouble) {
        self.client = None;
        let text = format!("{url}: {trouble}");
        let is_due = self.complained.is_none_or(|at| at.elapsed() > COMPLAINT);
        match (self.first.take(), &trouble) {
            (Some(first), Trouble::Lasting(_)) => {
                let _ = first.send(Err(Trouble::Lasting(text.clone())));
            }
            (Some(first), Trouble::Passing(_)) => {
                let _ = first.send(Err(Trouble::Passing(text.clone())));
            }
            (None, Trouble::Lasting(_)) if is_due => error!("etcd: {text}"),
            (None, Trouble::Passing(_)) if is_due => {
                warn!("etcd: {text}; the fleet stays as last known; retrying");
            }
            _ => {}
        }
        if is_due {
            self.complained = Some(Instant::now());
        }
        // Once: the synchronisation may have learned since then that the leader was replaced.
        if let Some(sent) = self.sent.as_mut().filter(|sent| sent.certain) {
            sent.certain = false;
            let _ = self.rosters.send(sent.clone());
        }
        self.told(|told| {
            told.connected = false;
            told.failures += 1;
            told.state = text;
        });
    }

    fn told<T>(&self, change: impl FnOnce(&mut status::Fleet) -> T) -> T {
        change(&mut self.told.lock().expect("readers do not panic"))
    }

    /// Publishes changes of the fleet to the status and the synchronisation.
    fn publish(&mut self) {
        if !std::mem::take(&mut self.is_news) {
            return;
        }
        let mut nodes: Vec<_> = self.registry.nodes().iter().collect();
        nodes.sort_by_key(|(_, node)| node.created);
        let node = |(name, node): (&String, &Node)| status::Node {
            name: name.clone(),
            address: node.record.address,
            protocol: node.record.protocol,
            version: node.record.version.clone(),
        };
        self.told(|told| {
            told.nodes = nodes.into_iter().map(node).collect();
            told.refused = self.registry.refused().cloned().collect();
        });
        let roster = self.registry.roster();
        if self.sent.as_ref() != Some(&roster) {
            let _ = self.rosters.send(roster.clone());
            self.sent = Some(roster);
        }
    }
}
