use onramp_fleets::world::*; use onramp_fleets::network::Paths;
#[test]
fn trace(){
 let hosts=8;
 for seed in 5..9 { for len in [153_000_000i64,203_000_000, 900_000_000, 2_500_000_000] { for seen in [true,false] {
 let mut w=World::new(Spec{seed,hosts,paths:Paths{load:0.3,..Paths::default()},..Spec::default()});
 w.gather(&(0..hosts).collect::<Vec<_>>(),0,1);
 w.run(20_000_000_000+(seed as i64)*370_000_000);
 let h=(seed as usize+2)%hosts; w.suspend(h, len, seen);
 let mut bad=vec![]; let mut lost=0;
 for n in 0..300 { w.run(50_000_000); let s=w.samples(); if s.len()<hosts {lost+=1;} if s.len()<3 {continue;} let mut t:Vec<i64>=s.iter().map(|x|x.fleet_ns).collect(); t.sort(); let base=t[t.len()/2];
  for x in &s { if (x.fleet_ns-base).abs() > 5*x.sigma_ns { bad.push((n,x.host,x.fleet_ns-base,x.sigma_ns)); } } }
 println!("0 seed {seed} host {h} len {} seen {seen}: lost {lost} bad {} {:?} steps {} jumps {:?}", len/1_000_000, bad.len(), bad.iter().step_by(1+bad.len()/6).collect::<Vec<_>>(), w.count(h,"fleet_steps"), (0..hosts).map(|h|w.count(h,"clock_jumps")).collect::<Vec<_>>());
 }}}
}
