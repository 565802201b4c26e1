//! etcd itself fails, or does not let us in.
use std::{process::Command, thread, time::Duration};

use etcd_client::Permission;
use nix::sys::signal::Signal;
use onramp_clock::stamps::now_mono_ns;

use crate::world::{within, Fleet, SLACK, WINDOW};

fn is_connected(fleet: &Fleet, n: usize) -> bool {
    let status = fleet.agent(n).try_status();
    status.is_some_and(|s| s.membership.fleet.expect("in etcd").connected)
}

#[test]
fn without_etcd_the_fleet_goes_on_until_its_leader_is_lost_too() {
    let mut fleet = Fleet::start(31, 3);
    let (leader, _) = fleet.leader(1).expect("one leads");
    let rest: Vec<usize> = (1..=3).filter(|n| *n != leader).collect();
    let now = now_mono_ns();
    let before = fleet.offset_ns(rest[0], now);

    fleet.etcd.kill();
    fleet.watch(9.0); // longer than every lease
    assert!(fleet.is_whole(), "they go on as they were");
    assert!(rest.iter().all(|n| !is_connected(&fleet, *n)));

    fleet.stop(leader, Signal::SIGKILL);
    let took = fleet.within(Duration::from_secs(8) + SLACK, "leases expire", |f| {
        f.is_timeless(&rest)
    });
    println!(
        "no fleet time {:.1} s after the leader's death",
        took.as_secs_f64()
    );
    assert!(took > Duration::from_secs(2), "{took:?}: a lease is 5 s");
    for n in &rest {
        assert_eq!(fleet.agent(*n).status().state, "expired");
    }

    fleet.etcd.again();
    let took = fleet.within(SLACK * 2 + WINDOW * 3, "another leads", |f| {
        rest.iter().all(|n| f.agent(*n).status().clock.is_some())
    });
    println!("fleet time {:.1} s after etcd's return", took.as_secs_f64());
    fleet.launch(leader, &[]);
    fleet.settle();
    let moved_ns = (fleet.offset_ns(rest[0], now) - before).abs();
    println!("over a gap of some seconds it has moved by {moved_ns:.0} ns");
    assert!(moved_ns < 50_000.0, "{moved_ns} ns: fleet time began anew");
    assert_eq!(fleet.steps(), 0);
}

#[test]
fn an_etcd_that_has_forgotten_everything_is_told_again() {
    let mut fleet = Fleet::start(32, 3);
    fleet.etcd.kill();
    fleet.etcd.wipe();
    fleet.watch(1.0);
    fleet.etcd.again();
    fleet.within(SLACK * 2, "all are registered again", |f| {
        (1..=3).all(|n| is_connected(f, n))
    });
    fleet.settle();
    assert_eq!(fleet.steps(), 0);
}

#[test]
fn an_agent_waits_for_an_etcd_that_is_not_there_yet() {
    let mut fleet = Fleet::empty(33, &[]);
    fleet.etcd.kill();
    fleet.etcd.wipe(); // killed before it had elected itself, it would not ever
    fleet.launch(1, &[]);
    within(SLACK, "it answers", || {
        fleet.agent(1).try_status().is_some()
    });
    let status = fleet.agent(1).status();
    let etcd = status.membership.fleet.expect("in etcd");
    assert!(status.clock.is_none() && !etcd.connected, "{etcd:?}");
    assert!(
        fleet.agent(1).text().contains(&fleet.etcd.url),
        "{}",
        fleet.agent(1).text()
    );
    fleet.etcd.again();
    // The first of two servers is never there.
    let both = format!("http://127.0.33.253:2379,{}", fleet.etcd.url);
    fleet.launch(2, &["--etcd", &both]);
    fleet.settle();
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
        assert_eq!(agent.ends(SLACK * 2), Some(1), "{options:?}");
        assert!(agent.text().contains(url), "{}", agent.text());
        println!("{}", agent.text().lines().last().unwrap_or(""));
    }
    let mut agent = fleet.spawn(1, "n1", &[&user[..], &[&right]].concat());
    within(SLACK, "it is let in", || {
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
    for (name, of) in [("server", "IP:127.0.35.254"), ("other", "IP:127.0.35.253")] {
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
                &format!("subjectAltName={of}"),
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
    within(SLACK, "it is let in", || {
        known
            .try_status()
            .is_some_and(|s| s.membership.fleet.expect("in etcd").connected)
    });
    thread::sleep(Duration::from_secs(1));
    let refused = unknown.status().membership.fleet.expect("in etcd");
    assert!(!refused.connected, "{refused:?}");
    println!("{}", refused.state);
    let _ = std::fs::remove_dir_all(&dir);
}
