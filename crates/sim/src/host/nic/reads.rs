// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Reads (TIMELY, section 5): the host that gets the data has the congestion control, and paces requests for segments as
//! if it sent their bytes. The host that has the data sends a requested segment at the rate of its line, without rate
//! control. Nobody acknowledges: what arrives in order completes segments, and what does not makes the reader go back.

use super::scheduler::{Scheduled, State, Turn};
use super::Nics;
use crate::host::site::Site;
use crate::net::packet::{Kind, Packet, Path, NONE};
use onramp_units::Time;

/// The rest of a requested segment.
pub(super) struct Response {
    flow: u32,
    connection: u32,
    ordinal: u16,
    next: u64,
    end: u64,
    there: Path,
}

impl Nics {
    /// Handles a request at the host that has the data: the segment leaves after those that were requested before it.
    /// All of them have one turn in the round robin.
    pub(super) fn requested(&mut self, site: &Site, host: u32, id: u32) {
        let request = &site.net.packets[id];
        let packets = u64::from(request.payload);
        let end_of_flow = site.network.part(request.flow, 0).end;
        let nic = &mut self.nics[host as usize];
        if nic.responses.is_empty() {
            nic.flows.push(Scheduled {
                sender: NONE,
                state: State::Ready,
                turn: Turn::Responses,
                next_at: Time::ZERO,
                held_until: Time::ZERO,
            });
        }
        nic.responses.push_back(Response {
            flow: request.flow,
            connection: request.connection,
            ordinal: request.ordinal,
            next: request.seq,
            end: end_of_flow.min(request.seq + packets * u64::from(self.common.payload)),
            there: site.network.there(request.flow, request.ordinal),
        });
    }

    /// Sends the next packet of the oldest requested segment, which leaves as a whole.
    pub(super) fn send_response(&mut self, site: &mut Site, host: u32, place: usize) {
        let nic = &mut self.nics[host as usize];
        let port = nic.port;
        let response = nic.responses.front_mut().expect("it has a turn");
        let left = response.end - response.next;
        let payload = left.min(u64::from(self.common.payload)) as u16;
        let id = site.net.packets.add(Packet {
            seq: response.next,
            flow: response.flow,
            connection: response.connection,
            wire_bytes: payload + super::data_header(self.common.feedback),
            payload,
            ordinal: response.ordinal,
            ..Packet::new(Kind::ReadResponse, site.net.now, response.there)
        });
        response.next += u64::from(payload);
        if response.next < response.end {
            nic.next_is(place);
        } else {
            nic.last = place;
            nic.responses.pop_front();
        }
        if nic.responses.is_empty() {
            self.remove_entry(host, place);
        }
        super::begin_data(site, id);
        site.net.transmit(port, id);
    }

    /// Handles requested data at the reader, as the acknowledgement that it would send to the other host.
    pub(super) fn read(&mut self, site: &mut Site, id: u32) {
        let (receiver, back) = self.receiver_of(site, id);
        if self.answer(site, id, receiver, back) {
            self.acknowledged(site, id);
        }
    }
}
