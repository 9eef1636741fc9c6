//! Options of `rocebench mesh`: those of a sweep, and facts that a launcher may not provide.

use clap::Args;

use super::run::RunArgs;
use crate::plan::HostPort;

const AFTER_HELP: &str = "\
Start the same command at all ranks. Each rank is a node; rank 0 also leads, prints and writes.
Without --pattern it measures pairs: each node to each other, one flow at a time per node.

Examples:
  srun -N64 rocebench mesh --quick               find the slow node, cable or path
  srun -N8 rocebench mesh -D 2s                  eight nodes of Slurm
  mpirun -n 8 --map-by node rocebench mesh --pattern incast --fan-in 1,2,4
  mpiexec -n 8 -ppn 1 rocebench mesh --pattern ring
  rocebench mesh --nodes node[01-16]             each node runs `rocebench serve`
  rocebench mesh --nodes local:4 -D 1s           four nodes in this process";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct MeshArgs {
    /// Host of rank 0, optionally with a port, for launchers that do not provide it; the same at all ranks
    #[arg(long, value_name = "HOST", conflicts_with_all = ["host", "nodes"], help_heading = "Connection")]
    pub rank_0: Option<HostPort>,
    /// Number of ranks, for launchers that do not provide it; the same at all ranks
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..),
        conflicts_with_all = ["host", "nodes"],
        help_heading = "Connection"
    )]
    pub ranks: Option<u32>,
    #[command(flatten)]
    pub run: RunArgs,
}
