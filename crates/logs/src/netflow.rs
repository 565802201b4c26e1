// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! NetFlow and IPFIX as CSV: columns by the names that exporters and collectors give them (nfdump, SiLK, the information
//! elements of IANA, flow logs of clouds).

use crate::connection::{Connection, Connections};
use crate::error::{LogError, Place, Reason};
use crate::time::{number_ns, since_1970_ns, Unit};
use csv::{ReaderBuilder, StringRecord, Trim};
use std::io::BufRead;

const EXPECTED: &str = "expected CSV with a line of names: source and destination address and port, protocol, bytes, start, \
                        and end or duration, named as by nfdump, SiLK, IPFIX or a cloud's flow log";

/// IP and TCP headers of a packet, with time stamps.
const HEADERS: u64 = 52;

/// Names in lower case; the first that is there counts, of addresses the first that a record has.
const FROM: &[&str] = &[
    "sa",
    "srcaddr",
    "sip",
    "src_ip",
    "srcip",
    "sourceipv4address",
    "sourceipv6address",
    "src_addr",
];
const TO: &[&str] = &[
    "da",
    "dstaddr",
    "dip",
    "dst_ip",
    "dstip",
    "destinationipv4address",
    "destinationipv6address",
    "dst_addr",
];
const FROM_PORT: &[&str] = &["sp", "srcport", "sport", "src_port", "sourcetransportport"];
const TO_PORT: &[&str] = &[
    "dp",
    "dstport",
    "dport",
    "dst_port",
    "destinationtransportport",
];
const PROTOCOL: &[&str] = &["pr", "pro", "proto", "protocol", "protocolidentifier"];
const BYTES: &[&str] = &[
    "ibyt",
    "bytes",
    "octetdeltacount",
    "octettotalcount",
    "in_bytes",
];
const PACKETS: &[&str] = &[
    "ipkt",
    "packets",
    "packetdeltacount",
    "packettotalcount",
    "in_pkts",
];
const BACK_BYTES: &[&str] = &["obyt", "reverseoctetdeltacount", "out_bytes"];
const BACK_PACKETS: &[&str] = &["opkt", "reversepacketdeltacount", "out_pkts"];
const START: &[(&str, Unit)] = &[
    ("ts", Unit::Seconds),
    ("firstseen", Unit::Seconds),
    ("first_seen", Unit::Seconds),
    ("stime", Unit::Seconds),
    ("start", Unit::Seconds),
    ("flowstartseconds", Unit::Seconds),
    ("flowstartmilliseconds", Unit::Milliseconds),
    ("flowstartmicroseconds", Unit::Microseconds),
    ("flowstartnanoseconds", Unit::Nanoseconds),
];
const END: &[(&str, Unit)] = &[
    ("te", Unit::Seconds),
    ("lastseen", Unit::Seconds),
    ("last_seen", Unit::Seconds),
    ("etime", Unit::Seconds),
    ("end", Unit::Seconds),
    ("flowendseconds", Unit::Seconds),
    ("flowendmilliseconds", Unit::Milliseconds),
    ("flowendmicroseconds", Unit::Microseconds),
    ("flowendnanoseconds", Unit::Nanoseconds),
];
const DURATION: &[(&str, Unit)] = &[
    ("td", Unit::Seconds),
    ("dur", Unit::Seconds),
    ("duration", Unit::Seconds),
    ("flowdurationmilliseconds", Unit::Milliseconds),
    ("flowdurationmicroseconds", Unit::Microseconds),
];

/// The places of a file's columns.
struct Columns {
    from: Vec<usize>,
    to: Vec<usize>,
    from_port: usize,
    to_port: usize,
    protocol: usize,
    bytes: usize,
    packets: Option<usize>,
    back: Option<(usize, Option<usize>)>,
    start: (usize, Unit),
    end: Option<(usize, Unit)>,
    duration: Option<(usize, Unit)>,
}

/// Adds the connections of a file.
pub fn csv(file: impl BufRead, into: &mut Connections) -> Result<(), LogError> {
    let mut reader = ReaderBuilder::new()
        .trim(Trim::All)
        .flexible(true)
        .from_reader(file);
    let names = reader.headers().map_err(|error| wrong(&error, 1))?.clone();
    let columns = Columns::of(&names).map_err(|reason| LogError::at(Place::Line(1), reason))?;
    for record in reader.records() {
        let record = record.map_err(|error| wrong(&error, 1))?;
        let line = record.position().map_or(1, csv::Position::line);
        let here = |reason| LogError::at(Place::Line(line), reason);
        // nfdump ends its CSV with a summary.
        if record.get(0) == Some("Summary") {
            break;
        }
        if record.len() != names.len() {
            let (found, expected) = (record.len(), names.len());
            return Err(here(Reason::Fields { found, expected }));
        }
        columns.add(&names, &record, into).map_err(here)?;
    }
    Ok(())
}

impl Columns {
    fn of(names: &StringRecord) -> Result<Columns, Reason> {
        let names: Vec<String> = names.iter().map(str::to_lowercase).collect();
        let any = |known: &[&str]| {
            known
                .iter()
                .find_map(|name| names.iter().position(|other| other == name))
        };
        let timed = |known: &[(&str, Unit)]| {
            let place = |(name, unit): &(&str, Unit)| {
                Some((names.iter().position(|other| other == name)?, *unit))
            };
            known.iter().find_map(place)
        };
        let must = |place: Option<usize>, lacks| {
            place.ok_or(Reason::Column {
                lacks,
                expected: EXPECTED,
            })
        };
        let all = |known: &[&str], lacks| {
            let is_known = |name: &String| known.contains(&name.as_str());
            let places: Vec<usize> = (0..names.len())
                .filter(|place| is_known(&names[*place]))
                .collect();
            must(places.first().copied(), lacks).map(|_| places)
        };
        let columns = Columns {
            from: all(FROM, "a source address")?,
            to: all(TO, "a destination address")?,
            from_port: must(any(FROM_PORT), "a source port")?,
            to_port: must(any(TO_PORT), "a destination port")?,
            protocol: must(any(PROTOCOL), "a protocol")?,
            bytes: must(any(BYTES), "a number of bytes")?,
            packets: any(PACKETS),
            back: any(BACK_BYTES).map(|bytes| (bytes, any(BACK_PACKETS))),
            start: timed(START).ok_or(Reason::Column {
                lacks: "a start",
                expected: EXPECTED,
            })?,
            end: timed(END),
            duration: timed(DURATION),
        };
        must(
            columns.end.or(columns.duration).map(|(place, _)| place),
            "an end or a duration",
        )?;
        Ok(columns)
    }

    fn add(
        &self,
        names: &StringRecord,
        record: &StringRecord,
        into: &mut Connections,
    ) -> Result<(), Reason> {
        let wrong = |place: usize, expected| Reason::Value {
            column: names[place].to_owned(),
            found: record[place].to_owned(),
            expected,
        };
        if !["6", "tcp"].contains(&&*record[self.protocol].to_lowercase()) {
            into.leave_out();
            return Ok(());
        }
        let address = |places: &[usize]| {
            let given = places.iter().find(|place| !record[**place].is_empty());
            let place = given.ok_or_else(|| wrong(places[0], "an address"))?;
            Ok(record[*place].to_owned())
        };
        let port = |place: usize| {
            record[place]
                .parse()
                .map_err(|_| wrong(place, "a port, 0 to 65535"))
        };
        let count = |place: usize| {
            record[place]
                .parse::<u64>()
                .map_err(|_| wrong(place, "a whole number"))
        };
        let payload = |bytes: usize, packets: Option<usize>| {
            let packets = packets.map(count).transpose()?.unwrap_or(0);
            Ok(count(bytes)?.saturating_sub(packets.saturating_mul(HEADERS)))
        };
        let (start, unit) = self.start;
        let start_ns = since_1970_ns(&record[start], unit)
            .ok_or_else(|| wrong(start, "a time since 1970, or a date"))?;
        let duration_ns = match (self.duration, self.end) {
            (Some((place, unit)), _) => {
                number_ns(&record[place], unit).ok_or_else(|| wrong(place, "a duration"))?
            }
            (None, Some((place, unit))) => {
                let end = since_1970_ns(&record[place], unit);
                end.ok_or_else(|| wrong(place, "a time since 1970, or a date"))? - start_ns
            }
            (None, None) => 0,
        };
        into.add(&Connection {
            from: address(&self.from)?,
            from_port: port(self.from_port)?,
            to: address(&self.to)?,
            to_port: port(self.to_port)?,
            start_ns,
            duration_ns,
            bytes: payload(self.bytes, self.packets)?,
            back_bytes: match self.back {
                Some((bytes, packets)) => payload(bytes, packets)?,
                None => 0,
            },
        })
    }
}

fn wrong(error: &csv::Error, line: u64) -> LogError {
    let line = error.position().map_or(line, csv::Position::line);
    LogError::at(Place::Line(line), Reason::Read(error.to_string()))
}
