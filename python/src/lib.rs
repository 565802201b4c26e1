// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-or-later
//! What Python calls, as the module `onramp._onramp`: scenarios, the simulator, results. The package beside it (`onramp/`)
//! gives this its form for users; here is no decision of its own.

mod advise;
mod errors;
mod extend;
mod results;
mod scenario;
mod simulate;
mod sweep;
mod tables;

use pyo3::prelude::*;

#[pymodule]
mod _onramp {
    #[pymodule_export]
    use crate::advise::{Answer, Question};
    #[pymodule_export]
    use crate::errors::{PartFailure, ResultsError, ScenarioError};
    #[pymodule_export]
    use crate::extend::{
        congestion_control::{register_congestion_control, Ack, Window},
        law::{register_law, Departure, Flow, Head, Sample},
        rate_control::{register_rate_control, NicPath, RateAck},
    };
    #[pymodule_export]
    use crate::results::{
        compare, folded, read_summary, remarks, table, table_cells, write_report,
    };
    #[pymodule_export]
    use crate::scenario::{scenario_keys, Scenario};
    #[pymodule_export]
    use crate::simulate::{simulate, Made};
    #[pymodule_export]
    use crate::sweep::{Stop, Sweep, SweepDirectory};
    #[pymodule_export]
    use crate::tables::Table;
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");
}
