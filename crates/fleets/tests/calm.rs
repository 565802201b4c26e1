use onramp_fleets::grid::*;
fn show(what:&str,e:&onramp_fleets::errors::Errors){println!("{what:25}: n {:6} avail {:.3} err p50 {:.0} p99 {:.0} max {:.0}; sigma p50 {:.0} p99 {:.0}; ratio {:.2} >3s {:.5} >5s {:.5} worst {:.2}",e.count(),e.availability(),e.error_ns(0.5),e.error_ns(0.99),e.error_ns(1.0),e.sigma_ns(0.5),e.sigma_ns(0.99),e.sigma_ns(0.5)/e.error_ns(0.5),e.beyond(3.0),e.beyond(5.0),e.worst());}
#[test]
fn calm_one(){ let ev=std::env::var("EV").unwrap_or_default(); for (h,l) in [(4,0.0),(20,0.0),(20,0.8),(4,0.8)]{ let e=run(&calm(h,l,1),80); show(&format!("{h} {l}"),&e); }
 for (h,l) in [(4,0.0),(8,0.3),(4,0.8)] { for event in [Event::RateSteps,Event::Suspended,Event::Frozen,Event::Jumps,Event::Members,Event::Leaders]{ if !format!("{event:?}").contains(&ev) {continue;} let mut e=onramp_fleets::errors::Errors::default(); for seed in 5..8 { let c=Cell{event,..calm(h,l,seed)}; e.extend(&run(&c,120)); } show(&format!("{event:?} {h} {l}"),&e);} } }
