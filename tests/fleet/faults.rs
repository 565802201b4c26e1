// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! etcd itself fails, or does not let us in.
use std::process::Command;

use etcd_client::Permission;
use nix::sys::signal::Signal;

use crate::{
    machine::until,
    world::{ip, Agent, Fleet},
};

fn is_connected(fleet: &Fleet, n: usize) -> bool {
    let status = fleet.agent(n).try_status();
    status.is_some_and(|s| s.membership.fleet.expect("in etcd").connected)
}

#[test]
fn an_etcd_that_has_forgotten_everything_is_told_again() {
    let mut fleet = Fleet::start(32, 3);
    fleet.etcd.kill();
    fleet.etcd.wipe();
    fleet.watch(1);
    fleet.etcd.again();
    fleet.until("all are registered again", |f| {
        (1..=3).all(|n| is_connected(f, n))
    });
    fleet.settle();
    assert_eq!(fleet.steps(), 0);
}

#[test]
fn users_and_certificates_are_checked() {
    let fleet = Fleet::empty(34, &[]);
    fleet.etcd.ask(None, async |mut client| {
        let all = Permission::read_write("/onramp/").with_prefix();
        for role in ["root", "onramp"] {
            client.role_add(role).await.expect("a role");
            client.user_add(role, "right", None).await.expect("a user");
            client.user_grant_role(role, role).await.expect("granted");
        }
        client
            .role_grant_permission("onramp", all)
            .await
            .expect("granted");
        client.auth_enable().await.expect("enabled");
    });
    let (right, wrong) = (fleet.dir.join("right"), fleet.dir.join("wrong"));
    std::fs::write(&right, "right\n").expect("written");
    std::fs::write(&wrong, "wrong\n").expect("written");
    let (right, wrong) = (right.to_string_lossy(), wrong.to_string_lossy());
    let url = fleet.etcd.url.as_str();
    let user = [
        "--etcd",
        url,
        "--etcd-user",
        "onramp",
        "--etcd-password-file",
    ];
    for options in [&[&user[..], &[&wrong]].concat()[..], &user[..2]] {
        let mut agent = fleet.spawn(1, "n1", options);
        assert_eq!(agent.ends(), Some(1), "{options:?}");
        assert!(agent.text().contains(url), "{}", agent.text());
        println!("{}", agent.text().lines().last().unwrap_or(""));
    }
    let mut agent = fleet.spawn(1, "n1", &[&user[..], &[&right]].concat());
    until("it is let in", || {
        agent
            .try_status()
            .is_some_and(|s| s.membership.fleet.expect("in etcd").connected)
    });
    assert_eq!(agent.stop(Signal::SIGTERM), Some(0));
    assert!(!agent.text().contains("cannot leave"), "{}", agent.text());
}

#[test]
fn etcd_is_reached_over_tls() {
    let name = format!("onramp-fleet-{}-tls", std::process::id());
    let dir = std::env::temp_dir().join(name);
    std::fs::create_dir_all(&dir).expect("a directory");
    let at = |name: &str| dir.join(name).to_string_lossy().into_owned();
    for (name, of) in [("server", ip(35, 254)), ("other", ip(35, 253))] {
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
            ])
            .args([
                "-days",
                "2",
                "-subj",
                "/CN=etcd",
                "-addext",
                &format!("subjectAltName=IP:{of}"),
                "-addext",
                "basicConstraints=critical,CA:FALSE",
            ])
            .args([
                "-keyout",
                &at(&format!("{name}.key")),
                "-out",
                &at(&format!("{name}.pem")),
            ])
            .output()
            .expect("Debian has openssl");
        assert!(made.status.success(), "{made:?}");
    }
    let fleet = Fleet::empty(
        35,
        &[
            "--cert-file",
            &at("server.pem"),
            "--key-file",
            &at("server.key"),
        ],
    );
    let url = fleet.etcd.url.as_str();
    let known = fleet.spawn(1, "n1", &["--etcd", url, "--etcd-ca", &at("server.pem")]);
    let unknown = fleet.spawn(2, "n2", &["--etcd", url, "--etcd-ca", &at("other.pem")]);
    until("it is let in", || {
        known
            .try_status()
            .is_some_and(|s| s.membership.fleet.expect("in etcd").connected)
    });
    let fleet_of = |agent: &Agent| agent.status().membership.fleet.expect("in etcd");
    until("the other certificate is refused", || {
        fleet_of(&unknown).failures > 1
    });
    let refused = fleet_of(&unknown);
    assert!(!refused.connected, "{refused:?}");
    println!("{}", refused.state);
    let _ = std::fs::remove_dir_all(&dir);
}
