use onramp_fleets::grid::*;
#[test]
fn calm_one(){ for (h,l) in [(4,0.0),(20,0.0),(20,0.8),(4,0.8)]{ let e=run(&calm(h,l,1),80); println!("{h} {l}: {:.0} {:.0} ratio {:.2} worst {:.2}",e.error_ns(0.5),e.sigma_ns(0.5),e.sigma_ns(0.5)/e.error_ns(0.5),e.worst()); }}
