//! A Slurm of four nodes on this machine: a controller and four slurmd, each on a loopback address of its own, which is also
//! its name, so that it needs no resolver. All end with the test.

use std::fmt::Write as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use testing::wait::wait_or_tell;

use super::job::{EXPECTED, command};

const NODES: u16 = 4;

/// It runs until it is dropped.
pub struct Cluster {
    folder: TempDir,
    daemons: Vec<Child>,
}

impl Cluster {
    pub fn start() -> Cluster {
        let folder = TempDir::new().unwrap();
        std::fs::create_dir(folder.path().join("state")).unwrap();
        let mut cluster = Cluster { daemons: Vec::new(), folder };
        std::fs::write(cluster.conf(), cluster.text()).unwrap();
        cluster.daemon("slurmctld", &["-D"]);
        for node in 1..=NODES {
            cluster.daemon("slurmd", &["-D", "-N", &name(node)]);
        }
        wait_or_tell(
            EXPECTED,
            || (cluster.state() == "idle").then_some(()),
            || format!("the nodes are {:?}: {}", cluster.state(), cluster.log()),
        );
        cluster
    }

    /// A command that finds this cluster.
    pub fn command(&self, program: &str) -> Command {
        let mut command = command(program);
        command.env("SLURM_CONF", self.conf());
        command
    }

    /// `srun` with these options; its lines begin with the number of the task.
    pub fn srun(&self, options: &[&str]) -> Command {
        let mut srun = self.command("srun");
        srun.arg("--label").args(options);
        srun
    }

    /// Names of the jobs that run.
    pub fn jobs(&self) -> Vec<String> {
        let reported = String::from_utf8(
            self.command("squeue").args(["-h", "-o", "%A"]).output().unwrap().stdout,
        )
        .unwrap();
        reported.split_whitespace().map(str::to_owned).collect()
    }

    fn conf(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    fn state(&self) -> String {
        self.command("sinfo")
            .args(["-h", "-o", "%T"])
            .output()
            .map(|it| String::from_utf8_lossy(&it.stdout).trim().to_owned())
            .unwrap_or_else(|error| error.to_string())
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("slurmctld.log")).unwrap_or_default()
    }

    fn daemon(&mut self, program: &str, options: &[&str]) {
        let daemon = self
            .command(program)
            .args(options)
            .arg("-f")
            .arg(self.conf())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn().unwrap_or_else(|error| {
            panic!("{program}: {error}; scripts/setup --tests installs slurmctld, slurmd and slurm-client")
        });
        self.daemons.push(daemon);
    }

    fn text(&self) -> String {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let user =
            String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        let (host, user, folder) = (host.trim(), user.trim(), self.folder.path().display());
        // Held until all are chosen, so that they differ.
        let free: Vec<TcpListener> = (0..=NODES).map(|_| free_port()).collect();
        let mut ports = free.iter().map(|it| it.local_addr().unwrap().port());
        // With a short MinJobAge `sbatch --wait` looks each two seconds, else after 2, 10 and 42.
        let mut text = format!(
            "ClusterName=rocebench\n\
             SlurmctldHost={host}(127.0.0.1)\n\
             SlurmctldPort={}\n\
             SlurmUser={user}\n\
             SlurmdUser={user}\n\
             AuthType=auth/none\n\
             CredType=cred/none\n\
             ProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\n\
             SelectType=select/linear\n\
             SwitchType=switch/none\n\
             SchedulerType=sched/builtin\n\
             JobCompType=jobcomp/none\n\
             AccountingStorageType=accounting_storage/none\n\
             JobAcctGatherType=jobacct_gather/none\n\
             SlurmdParameters=config_overrides\n\
             ReturnToService=2\n\
             MinJobAge=5\n\
             StateSaveLocation={folder}/state\n\
             SlurmctldPidFile={folder}/slurmctld.pid\n\
             SlurmctldLogFile={folder}/slurmctld.log\n\
             SlurmdSpoolDir={folder}/spool.%n\n\
             SlurmdPidFile={folder}/slurmd.%n.pid\n\
             SlurmdLogFile={folder}/slurmd.%n.log\n\
             PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=FORCE:8\n",
            ports.next().unwrap(),
        );
        for (node, port) in (1..=NODES).zip(ports) {
            let name = name(node);
            // Writing to a String cannot fail.
            let _ = writeln!(
                text,
                "NodeName={name} NodeHostname={host} NodeAddr={name} Port={port} CPUs=2 RealMemory=100"
            );
        }
        text
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // All at once: told to end, a node's daemon would wait for its steps, and those for a controller that is gone.
        let own = format!("SLURM_CONF={}", self.conf().display());
        for pid in processes_with(&own) {
            let _ = kill(pid, Signal::SIGKILL);
        }
        for daemon in &mut self.daemons {
            let _ = daemon.wait();
        }
    }
}

/// The processes besides this one that have this in their environment.
fn processes_with(variable: &str) -> Vec<Pid> {
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.ok()?.path();
            let pid: i32 = path.file_name()?.to_str()?.parse().ok()?;
            let environment = std::fs::read(path.join("environ")).ok()?;
            let mut variables = environment.split(|byte| *byte == 0);
            let has = variables.any(|it| it == variable.as_bytes());
            has.then(|| Pid::from_raw(pid))
        })
        .collect()
}

/// The name and the address of a node.
pub fn name(node: u16) -> String {
    format!("127.0.14.{node}")
}

/// A free port below those that systems give to outgoing connections.
fn free_port() -> TcpListener {
    (0..1000)
        .map(|_| fastrand::u16(22_000..32_000))
        .filter_map(|port| TcpListener::bind(("0.0.0.0", port)).ok())
        .next()
        .expect("no port is free")
}
