// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! Errors of netlink for people.
use std::fmt::Debug;

use anyhow::{anyhow, Error};
use neli::{consts::nl::NlmsgerrAttr, err::RouterError};

/// What the kernel says, without the request, which neli appends in full.
pub fn plain<T: Debug, P: Debug>(error: RouterError<T, P>) -> Error {
    let RouterError::Nlmsgerr(refusal) = error else {
        return anyhow!("{error}");
    };
    let attributes = refusal.ext_ack().get_attr_handle();
    let reason = attributes.get_attr_payload_as_with_len::<String>(NlmsgerrAttr::Msg);
    match reason {
        Ok(reason) => anyhow!("{refusal}: {}", reason.trim_end_matches('\0')),
        Err(_) => anyhow!("{refusal}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use neli::{
        consts::{nl::NlmF, rtnl::Rtm},
        err::{NlmsgerrBuilder, NlmsghdrErrBuilder},
        genl::{AttrTypeBuilder, NlattrBuilder},
        types::{Buffer, GenlBuffer},
    };

    fn refusal(reason: Option<&str>) -> Error {
        let request = NlmsghdrErrBuilder::default()
            .nl_type(Rtm::Newqdisc)
            .nl_flags(NlmF::ACK)
            .nl_payload(Buffer::new())
            .build()
            .unwrap();
        let attribute = |reason: &str| {
            let number = AttrTypeBuilder::default().nla_type(NlmsgerrAttr::Msg);
            let attribute = NlattrBuilder::default()
                .nla_type(number.build().unwrap())
                .nla_payload(format!("{reason}\0").into_bytes());
            attribute.build().unwrap()
        };
        let said: GenlBuffer<_, _> = reason.iter().map(|reason| attribute(reason)).collect();
        let refusal = NlmsgerrBuilder::default().error(-2).nlmsg(request);
        plain(RouterError::Nlmsgerr(
            refusal.ext_ack(said).build().unwrap(),
        ))
    }

    #[test]
    fn a_refusal_is_the_kernels_words_without_the_request() {
        let unknown = "No such file or directory (os error 2)";
        assert_eq!(refusal(None).to_string(), unknown);
        let said = refusal(Some("Specified qdisc kind is unknown"));
        let expected = format!("{unknown}: Specified qdisc kind is unknown");
        assert_eq!(said.to_string(), expected);
        assert!(!format!("{said:?}").contains("nlmsg"));
    }
}
