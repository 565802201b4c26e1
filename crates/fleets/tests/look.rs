use onramp_fleets::grid::*;
use onramp_fleets::starvation::Starvation;
fn show(what:&str,e:&onramp_fleets::errors::Errors){println!("{what:45}: n {:6} avail {:.3} err p50 {:.0} p99 {:.0} max {:.0}; sigma p50 {:.0} p99 {:.0}; >3s {:.5} >5s {:.5} worst {:.2}",e.count(),e.availability(),e.error_ns(0.5),e.error_ns(0.99),e.error_ns(1.0),e.sigma_ns(0.5),e.sigma_ns(0.99),e.beyond(3.0),e.beyond(5.0),e.worst());}
#[test]
fn look(){
 for load in [0.0,0.4,0.8]{ for hosts in [4,20]{ let e=run(&calm(hosts,load,1),60); show(&format!("calm {hosts} load {load}"),&e);} }
 for what in [What::Machine,What::Process]{ for who in [Who::Some,Who::All]{ for part in [0.1,0.5,0.9]{ for burst in [1_000_000,30_000_000,300_000_000,2_000_000_000i64]{
   let c=Cell{starvation:Some((what,who,Starvation{part,burst_ns:burst})),..calm(4,0.0,3)};
   let e=run(&c,60); show(&format!("{what:?} {who:?} {part} {} ms",burst/1000000),&e);
 }}}}
 for event in [Event::RateSteps,Event::Leaders,Event::Members,Event::Suspended,Event::Frozen,Event::Jumps]{ let c=Cell{event,..calm(8,0.3,5)}; let e=run(&c,120); show(&format!("{event:?}"),&e);}
}
