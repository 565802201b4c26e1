use onramp_fleets::world::*;
#[test]
fn trace(){
 let mut w=World::new(Spec{seed:5,..Spec::default()});
 w.gather(&[0,1,2,3],0,1);
 w.run(20_000_000_000);
 w.suspend(2, 1_500_000_000, std::env::var("SEEN").is_ok());
 for n in 0..60 { w.run(250_000_000); let s=w.samples(); let base=s.first().map_or(0,|s|s.fleet_ns);
  let text:Vec<String>=s.iter().map(|s|format!("{}: {} ({})",s.host,s.fleet_ns-base,s.sigma_ns)).collect();
  println!("{:.2} {}  states {:?}",n as f64*0.25+0.25,text.join("  "), (0..4).map(|h|w.status(h).state).collect::<Vec<_>>()); }
 for h in 0..4 { println!("{h} {:?}", w.status(h).counters.into_iter().filter(|c|c.1>0).collect::<Vec<_>>()); }
}
