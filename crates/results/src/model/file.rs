//! What a sweep left behind: who ran it, where, and its cases.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::beside::BesideAttacker;
use super::config::CaseConfig;
use super::host::{Device, Host};
use super::perftest::PerftestComparison;
use super::run::Run;
use super::search::LoadSearch;

/// The version that this program writes, and the only one that it reads.
pub const SCHEMA_VERSION: u32 = 1;

/// One sweep: its program, machines, cases and results.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(title = "rocebench result file")]
pub struct ResultFile {
    /// Version of this layout; 1.
    pub schema_version: u32,
    /// The program that wrote the file.
    pub tool: Tool,
    /// When the sweep began, RFC 3339 in UTC.
    pub started_at: String,
    /// The program's arguments, its own name first. Secrets are left out.
    pub command_line: Vec<String>,
    /// The nodes; the first ran the sweep. Two nodes of one process have an entry each.
    pub nodes: Vec<Node>,
    /// The sweep's cases, in the order in which they ran.
    pub cases: Vec<CaseResult>,
    /// `--beside`: a victim alone and beside each attacker; absent otherwise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub beside: Vec<BesideAttacker>,
}

impl ResultFile {
    /// The same sweep with other cases.
    pub fn with_cases(&self, cases: Vec<CaseResult>) -> ResultFile {
        ResultFile {
            schema_version: self.schema_version,
            tool: self.tool.clone(),
            started_at: self.started_at.clone(),
            command_line: self.command_line.clone(),
            nodes: self.nodes.clone(),
            cases,
            beside: self.beside.clone(),
        }
    }

    /// The node of this name.
    pub fn node(&self, name: &str) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }
}

/// The program that wrote a result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tool {
    /// `rocebench`.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Git revision of its source, with `-dirty` after local changes; `null` when built without git.
    pub git: Option<String>,
}

/// A node: one process that owns verbs objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// Name, unique in the file: `client` and `server` where a sweep has two.
    pub name: String,
    /// Its machine.
    #[serde(flatten)]
    pub host: Host,
    /// The RDMA devices that it used; empty when it did not report them.
    pub devices: Vec<Device>,
}

/// One case of the sweep and its runs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Name of the case, unique in the file.
    pub id: String,
    /// All its settings.
    pub config: CaseConfig,
    /// Its runs, in order.
    pub runs: Vec<Run>,
    /// `--slo` and `--knee`: searches for a load of this case; empty otherwise.
    pub searches: Vec<LoadSearch>,
    /// `--against perftest`: the same case run by perftest, in turns with `runs`; `null` otherwise.
    pub perftest: Option<PerftestComparison>,
}
