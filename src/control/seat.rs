//! Where and how an end runs perftest: device, cores and library as its station has them, so that both programs
//! have the same.

use std::ffi::OsString;

use crate::perftest::{
    Job, Launch, LibraryError, MissingProgram, Place, Program, arguments, find_library,
};
use crate::plan::Case;
use crate::verbs::LinkLayer;

use super::failure::RunFailure;
use super::station::Station;

/// By which programs on the embedded device learn what is to go wrong.
const FAULTS_VARIABLE: &str = "SOFTROCE_FAULTS";

/// An end's part of every command line and environment of perftest's.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    device: String,
    ib_port: u8,
    gid_index: Option<u8>,
    environment: Vec<(&'static str, Option<OsString>)>,
    cores: Vec<usize>,
    /// The device is the embedded one, whose address one process only can have: it must be closed while perftest
    /// runs. Its threads are then not in perftest's way either.
    pub(super) embedded: bool,
}

impl Seat {
    /// The seat at a station for a case.
    ///
    /// # Errors
    /// No library for perftest on the embedded device.
    pub(super) fn of(station: &Station, case: &Case) -> Result<Seat, LibraryError> {
        let port = station.port();
        let embedded = port.embedded.as_ref();
        let environment = match embedded {
            Some(embedded) => vec![
                ("LD_PRELOAD", Some(preload()?)),
                (
                    FAULTS_VARIABLE,
                    embedded.faults.map(|faults| faults.to_string().into()),
                ),
            ],
            None => Vec::new(),
        };
        let has_gid = port.info.link_layer == LinkLayer::Ethernet || port.wants_grh;
        Ok(Seat {
            device: port.context.name().to_owned(),
            ib_port: port.info.port,
            gid_index: port.gid.filter(|_| has_gid).map(|entry| entry.index),
            environment,
            cores: match embedded {
                // Its engine is a thread of perftest's process, which must not share one core with a loop that
                // never yields; nor does ours.
                Some(_) => station.cores().to_vec(),
                None => station.cores_for(case).into_iter().flatten().collect(),
            },
            embedded: embedded.is_some(),
        })
    }

    /// The arguments for a job, but where the ends meet.
    pub(super) fn arguments(&self, job: &Job) -> Vec<String> {
        let place = Place {
            device: self.device.clone(),
            ib_port: self.ib_port,
            gid_index: self.gid_index,
        };
        arguments(job, &place)
    }

    /// What to start for a job; the client is given the server's address.
    ///
    /// # Errors
    /// The program is not installed.
    pub(super) fn launch(
        &self,
        job: &Job,
        tcp_port: u16,
        server: Option<&str>,
    ) -> Result<Launch, MissingProgram> {
        let port = ["-p".to_owned(), tcp_port.to_string()];
        let arguments = port
            .into_iter()
            .chain(self.arguments(job))
            .chain(server.map(str::to_owned))
            .collect();
        Ok(Launch {
            path: job.program.find()?,
            arguments,
            environment: self.environment.clone(),
            cores: self.cores.clone(),
        })
    }
}

fn preload() -> Result<OsString, LibraryError> {
    let mut value = find_library()?.into_os_string();
    if let Some(others) = std::env::var_os("LD_PRELOAD").filter(|others| !others.is_empty()) {
        value.push(":");
        value.push(others);
    }
    Ok(value)
}

/// Whether this end can run these programs, and which version the first of them tells.
///
/// # Errors
/// What is missing, and which package has it.
pub(super) fn equipped(
    station: &Station,
    programs: &[Program],
) -> Result<Option<String>, RunFailure> {
    let missing = |message: String, hint: String| RunFailure {
        bad_input: true,
        ..RunFailure::new(message, Some(hint))
    };
    let files = programs
        .iter()
        .map(|program| program.find())
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| missing(error.to_string(), error.hint()))?;
    if station.port().embedded.is_some() {
        find_library().map_err(|error| missing(error.to_string(), error.hint()))?;
    }
    Ok(files.first().and_then(|file| Program::version(file)))
}
