//! The launchers, and what a person calls them. It must not know what they tell.

use std::fmt;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    Slurm,
    /// `mpirun` of Open MPI, or `prterun`.
    OpenMpi,
    /// `mpiexec` of MPICH and its relatives.
    Mpich,
    /// An indexed Job.
    Kubernetes,
}

impl Launcher {
    /// How it is told to start eight.
    pub fn example(self) -> &'static str {
        match self {
            Launcher::Slurm => "srun -N8 rocebench mesh",
            Launcher::OpenMpi => "mpirun -n 8 --map-by node rocebench mesh",
            Launcher::Mpich => "mpiexec -n 8 -ppn 1 rocebench mesh",
            Launcher::Kubernetes => {
                "completions: 8 and parallelism: 8, with rocebench mesh --ranks 8"
            }
        }
    }
}

impl fmt::Display for Launcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Launcher::Slurm => "srun",
            Launcher::OpenMpi => "mpirun",
            Launcher::Mpich => "mpiexec",
            Launcher::Kubernetes => "the Kubernetes Job",
        })
    }
}
