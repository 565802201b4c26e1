use onramp_fleets::world::*; use onramp_fleets::network::Paths;
#[test]
fn trace(){
 let hosts=8;
 for seed in 5..8 {
 let mut w=World::new(Spec{seed,hosts,paths:Paths{load:0.3,..Paths::default()},..Spec::default()});
 w.gather(&(0..hosts).collect::<Vec<_>>(),0,1);
 w.run(20_000_000_000+(seed as i64)*370_000_000);
 let h=(seed as usize+2)%hosts; let now=w.now(); w.clock(h).change_rate(now,2e-7);
 for _ in 0..80 { w.run(250_000_000); let s=w.samples(); 
  let mut t:Vec<i64>=s.iter().map(|x|x.fleet_ns).collect(); t.sort(); let base=t[t.len()/2];
  let x=s.iter().find(|x|x.host==h).unwrap();
  println!("0 {:.2} err {} sigma {} doubt {:.0} ratio {:.1}", (w.now()-now) as f64/1e9, x.fleet_ns-base, x.sigma_ns, w.status(h).doubt_ns, (x.fleet_ns-base) as f64/x.sigma_ns as f64);
 } println!("0"); }
}
