// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! A domain: a part of the network with its events. Its loop takes events and passes them to the fabric, the
//! hosts and the flow starter.
//!
//! A domain owns its nodes, and the ends of flows at its hosts. Only packets go to other domains
//! (net/mail.rs).

use crate::engine::events::Event;
use crate::engine::team::Part;
use crate::flows::network::Network;
use crate::flows::starts::Starts;
use crate::host::clock::Clocks;
use crate::host::config::{self, Config};
use crate::host::edge::HostLaw;
use crate::host::kernel::Kernels;
use crate::host::nic::Nics;
use crate::host::per_host::PerHost;
use crate::host::site::hints::Hints;
use crate::host::site::huygens::{Edge, Prober};
use crate::host::site::Site;
use crate::net::fabric::mail::Mail;
use crate::net::fabric::{self, Fabric};
use crate::net::packet::Kind;
use crate::net::what::What;
use crate::watch::capture::Captures;
use crate::watch::delays::Arrivals;
use crate::watch::probe::Probes;
use onramp_units::{Sim, Time};
use std::collections::HashMap;
use std::hint::black_box;
use std::iter::once;
use std::sync::Arc;

/// Kinds of events, for profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// A packet is at a switch.
    SwitchArrival,
    /// A packet is at a host.
    HostArrival,
    /// A switch's line is free.
    SwitchLine,
    /// A host's line is free.
    HostLine,
    /// A host's next packet is due.
    Wake,
    /// A flow starts, stops or has a timeout.
    Flow,
}

/// A part of a network, at one instant.
pub(crate) struct Domain {
    pub site: Site,
    pub hosts: Hosts,
    pub captures: Captures,
    pub probes: Probes,
    pub arrivals: Arrivals,
}

/// All hosts of a domain.
pub(crate) enum Hosts {
    Nic(Nics),
    Kernel(Kernels),
}

/// The initial state that all domains of a simulation share.
pub(crate) struct InitialState {
    pub fabric: fabric::InitialState,
    pub network: Arc<Network>,
    pub config: Config,
    pub laws: Arc<[Option<HostLaw>]>,
    /// By node: the law with the rate of its line, if receivers count for the law.
    pub lines: Arc<[onramp_law::Config]>,
    /// Who probes whom.
    pub edges: Arc<[Edge]>,
}

impl Domain {
    /// Domain number `me` at time zero.
    pub fn new(initial: &InitialState, me: usize) -> Domain {
        let InitialState {
            network, config, ..
        } = initial;
        let nodes = initial.fabric.memories.len();
        let ports = (0..nodes as u32).map(|node| network.port_of(node));
        let mut domain = Domain {
            hosts: match &config.hosts {
                config::Hosts::Nic(_) => Hosts::Nic(Nics::new(config, ports)),
                config::Hosts::Kernel(_) => Hosts::Kernel(Kernels::new(config, nodes)),
            },
            captures: Captures::default(),
            probes: Probes::default(),
            arrivals: Arrivals::new(nodes),
            site: Site {
                net: Fabric::new(&initial.fabric, me),
                network: network.clone(),
                starts: Starts::new(
                    network.clone(),
                    me,
                    config.rounding,
                    config.hosts.is_kernel(),
                ),
                clocks: {
                    let synchronised = config.probing.is_some();
                    Clocks::new(&config.clocks, synchronised, config.seed, nodes)
                },
                prober: config.probing.map(|probing| {
                    let edges = initial.edges.clone();
                    Prober::new(probing, edges, network, config.seed, nodes)
                }),
                laws: initial.laws.clone(),
                hints: Hints::new(&initial.lines),
                reuse: {
                    let of_groups = config.groups.iter().map(|group| group.reuse);
                    PerHost::new(config, nodes, once(config.reuse).chain(of_groups))
                },
                last_delays: HashMap::new(),
                rtts: None,
                config: config.clone(),
            },
        };
        let site = &mut domain.site;
        site.begin_probing();
        site.starts.begin(&mut site.net);
        site.starts.await_next_request(&mut site.net);
        domain
    }

    /// All probes take a sample.
    pub fn look(&mut self, now: Time<Sim>) {
        self.probes.look(&self.site.net, now);
    }

    fn handle_until(&mut self, end: Time<Sim>) {
        if self.captures.any() {
            while self.step(end).is_some() {}
            return;
        }
        while let Some(event) = self.site.net.events.pop(end) {
            self.touch_next();
            self.handle(event);
        }
    }

    /// Prefetches the memory that the next event needs.
    fn touch_next(&self) {
        let net = &self.site.net;
        match net.events.next_soon() {
            Some(What::Arrival { packet }) => {
                black_box(net.packets[packet].seq);
            }
            Some(What::LineFree { port }) => {
                black_box(net.ports[port as usize].free_at);
            }
            _ => {}
        }
    }

    /// Handles one event, if there is one up to `end`, and returns its kind.
    pub fn step(&mut self, end: Time<Sim>) -> Option<Step> {
        let net = &mut self.site.net;
        let event = net.events.pop(end)?;
        let at_switch = |port: u32| net.ports[port as usize].on_switch;
        let step = match event.what {
            What::Arrival { packet } => match at_switch(u32::from(net.packets[packet].at_port)) {
                true => Step::SwitchArrival,
                false => Step::HostArrival,
            },
            What::LineFree { port } if at_switch(port) => Step::SwitchLine,
            What::LineFree { .. } => Step::HostLine,
            What::Wake { .. } => Step::Wake,
            What::Interrupt { .. } | What::Probe { .. } => Step::HostArrival,
            What::Timeout { .. }
            | What::TcpTimer { .. }
            | What::Acknowledge { .. }
            | What::CcTimer { .. }
            | What::Stop { .. }
            | What::FlowsDue
            | What::FlowMade { .. }
            | What::FlowStart { .. }
            | What::Ask { .. }
            | What::Asked { .. } => Step::Flow,
        };
        self.handle(event);
        self.captures.note(&mut self.site);
        Some(step)
    }

    fn handle(&mut self, event: Event<What>) {
        self.site.net.begin(&event);
        match event.what {
            What::Arrival { packet } => self.arrive(packet),
            What::LineFree { port } => self.line_freed(port),
            what => self.hosts.handle(&mut self.site, what),
        }
    }

    fn arrive(&mut self, id: u32) {
        let net = &mut self.site.net;
        let packet = &net.packets[id];
        let port = &net.ports[usize::from(packet.at_port)];
        if port.on_switch {
            return net.switch_receive(id);
        }
        self.arrive_at_host(id);
    }

    /// Not inlined, so that the path through switches, which most events take, stays short.
    #[inline(never)]
    fn arrive_at_host(&mut self, id: u32) {
        let net = &self.site.net;
        let packet = &net.packets[id];
        let carries_data = packet.kind.carries_data();
        let can_be_lost = carries_data || packet.kind == Kind::ReadRequest;
        if can_be_lost && self.site.config.loss > 0.0 && self.is_lost(id) {
            return;
        }
        if carries_data {
            let (net, packet) = (&self.site.net, &self.site.net.packets[id]);
            let host = net.ports[usize::from(packet.at_port)].node;
            self.arrivals.note(host, net.now - packet.sent);
        }
        match &mut self.hosts {
            Hosts::Nic(nics) => nics.receive(&mut self.site, id),
            Hosts::Kernel(kernels) => kernels.receive(&mut self.site, id),
        }
    }

    /// Loses a packet that arrives at a host, at random. Returns whether it is lost.
    #[cold]
    fn is_lost(&mut self, id: u32) -> bool {
        let net = &mut self.site.net;
        let port = usize::from(net.packets[id].at_port);
        let is_lost = net.uniform(net.ports[port].node) < self.site.config.loss;
        if is_lost {
            net.counters.drops += 1;
            net.packets.free(id);
        }
        is_lost
    }

    /// The line of a port is free: its node sends the next packet there.
    fn line_freed(&mut self, port: u32) {
        let line = &mut self.site.net.ports[port as usize];
        line.awaited = false;
        if line.on_switch {
            return self.site.net.switch_send(port);
        }
        let host = line.node;
        self.hosts.send(&mut self.site, host);
    }

    /// Updates the outcomes of flows in progress.
    pub fn note_outcomes(&self) {
        let outcomes = &self.site.network.outcomes;
        match &self.hosts {
            Hosts::Nic(nics) => nics.note_outcomes(outcomes),
            Hosts::Kernel(kernels) => kernels.note_outcomes(outcomes),
        }
    }
}

impl Part for Domain {
    type Mail = Mail;

    fn run_until(&mut self, end: Time<Sim>) {
        while let Some(at) = self.probes.next_at().filter(|at| *at <= end) {
            self.handle_until(at);
            self.look(at);
        }
        self.handle_until(end);
    }

    fn next_at(&self) -> Option<Time<Sim>> {
        self.site.net.events.next_at()
    }

    fn outgoing(&mut self) -> &mut [Mail] {
        &mut self.site.net.outgoing
    }

    fn due(mail: &Mail) -> Option<Time<Sim>> {
        mail.first
    }

    fn take_mail(&mut self, mail: &mut Mail) {
        self.site.net.take_mail(mail);
    }
}

impl Hosts {
    /// Sends the next packet of a host, if its line is free and a packet may leave.
    #[inline(never)]
    fn send(&mut self, site: &mut Site, host: u32) {
        match self {
            Hosts::Nic(nics) => nics.send(site, host),
            Hosts::Kernel(kernels) => kernels.send(site, host),
        }
    }

    /// Handles an event of hosts.
    #[inline(never)]
    fn handle(&mut self, site: &mut Site, what: What) {
        match what {
            What::Probe { edge } => {
                let host = site.queue_next_probe(edge);
                return self.send(site, host);
            }
            What::FlowsDue => return site.starts.make_due_flows(&mut site.net),
            What::FlowMade { flow } => return site.starts.start_made(&mut site.net, flow),
            What::FlowStart { flow } if !site.network.waits(flow) => {
                site.starts.await_next_flow(&mut site.net);
            }
            _ => {}
        }
        match self {
            Hosts::Nic(nics) => nics.handle(site, what),
            Hosts::Kernel(kernels) => kernels.handle(site, what),
        }
    }
}
