//! Compares the requirements of a flow with the limits of an end's device.

use crate::protocol::device_limits::{DeviceLimits, PacedRates};
use crate::protocol::memory_offer::DeviceKind;
use datapath::Geometry;
use settings::{CallStyle, Domains, Service, Settings, Timestamps};
use verbs::{LinkLayer, Port, VerbsError};

use super::needs::{EndRoles, Needs};
use crate::plan::{Case, Side};

impl DeviceKind {
    /// Whose queues the QPs of an open port have.
    pub(crate) fn new(port: &Port) -> DeviceKind {
        match port.embedded {
            Some(_) => DeviceKind::Embedded,
            None => DeviceKind::System,
        }
    }
}

fn refused_services(port: &Port) -> Vec<Service> {
    port.adapter
        .refused_services()
        .iter()
        .map(|(service, _)| match service {
            verbs::Service::ReliableConnection => Service::Rc,
            verbs::Service::UnreliableConnection => Service::Uc,
            verbs::Service::Datagram { .. } => Service::Ud,
        })
        .collect()
}

impl DeviceLimits {
    /// The limits of an open port.
    pub(crate) fn new(port: &Port) -> DeviceLimits {
        let extensions = port.adapter.extensions();
        let limits = &port.adapter.limits;
        DeviceLimits {
            device: port.context.name().to_owned(),
            qps: limits.max_qp,
            cqs: limits.max_cq,
            wrs_of_a_queue: limits.max_qp_wr,
            entries_of_a_cq: limits.max_cqe,
            message_bytes: port.info.max_message_bytes.into(),
            packet_bytes: port.info.active_mtu_bytes.into(),
            lacks_services: refused_services(port),
            has_atomics: limits.has_atomics,
            has_srqs: limits.max_srq > 0,
            receives_of_an_srq: limits.max_srq_wr,
            sges: limits.max_sge,
            sges_of_a_read: limits.max_sge_rd,
            sges_of_an_srq: limits.max_srq_sge,
            has_extended_post: extensions.extended_post,
            has_extended_lists: extensions.extended_lists,
            has_extended_poll: extensions.extended_poll,
            has_thread_domains: extensions.thread_domains,
            has_stamps: extensions.stamps,
            takes_udp_ports: port.info.link_layer == LinkLayer::Ethernet
                && port.context.driver().is_some_and(|it| it.takes_udp_ports),
            paces: limits.pacing.map(|pacing| PacedRates {
                least_kbit_per_s: pacing.least_kbit_per_s,
                most_kbit_per_s: pacing.most_kbit_per_s,
                services: Service::ALL
                    .iter()
                    .copied()
                    .filter(|service| match service {
                        Service::Rc => pacing.of_rc,
                        Service::Uc => pacing.of_uc,
                        Service::Ud => pacing.of_ud,
                    })
                    .collect(),
            }),
        }
    }

    /// Checks that the device can provide what the case requires at node number `node`.
    pub(crate) fn check(&self, case: &Case, node: u32) -> Result<(), VerbsError> {
        // Of a device that a flow asks for the node finds out when it opens it.
        let ends: Vec<_> =
            case.ends_at(node).filter(|(_, flow, side)| flow.device(*side).is_none()).collect();
        let traffic: u64 = ends.iter().map(|(_, flow, _)| u64::from(flow.qps)).sum();
        if case.is_set_up() {
            let qps = u64::from(case.qps) + traffic;
            self.allow("QPs", self.qps, qps, "--qps or --traffic-qps")?;
        }
        self.allow("QPs", self.qps, traffic, "--qps")?;
        ends.into_iter().try_for_each(|(_, flow, side)| self.check_flow(flow, side))
    }

    /// Checks that the device can provide what an end of a flow requires.
    pub(crate) fn check_flow(&self, flow: &Settings, side: Side) -> Result<(), VerbsError> {
        if flow.op.profile().is_atomic() && !self.has_atomics {
            let instead = "take fetch-add and compare-swap out of --op; send, write and read work on every device";
            return Err(self.lacks("atomic operations", instead));
        }
        if self.lacks_services.contains(&flow.service) {
            let (what, instead) = match flow.service {
                Service::Rc => ("RC QPs", "use --service ud, or choose another device with -d"),
                Service::Uc => ("UC QPs", "use --service rc"),
                Service::Ud => ("UD QPs", "use --service rc"),
            };
            return Err(self.lacks(what, instead));
        }
        self.check_calls(flow)?;
        if flow.service == Service::Ud {
            let (limit, needed) = (self.packet_bytes, flow.size_bytes.into());
            self.allow("bytes in one datagram, by its port's MTU", limit, needed, "--size")?;
        }
        let roles = EndRoles::new(flow, side);
        if roles.sends
            && let Some(kbit_per_s) = flow.device_kbit_per_s()
        {
            self.check_pace(flow.service, kbit_per_s)?;
        }
        let needs = Needs::new(flow, &Geometry::from_flow(flow), roles);
        if needs.srq_wrs.is_some() && !self.has_srqs {
            return Err(self.lacks("shared receive queues", "use --recv-queue per-qp"));
        }
        self.check_amounts(flow, roles, &needs)
    }

    fn lacks(&self, what: &'static str, instead: &'static str) -> VerbsError {
        VerbsError::DeviceLacks { device: self.device.clone(), what, instead }
    }

    /// Checks how many of each object, and of what each object holds.
    fn check_amounts(
        &self,
        flow: &Settings,
        roles: EndRoles,
        needs: &Needs,
    ) -> Result<(), VerbsError> {
        let sges_of_sends = if flow.op.profile().fetches && self.sges_of_a_read > 0 {
            self.sges.min(self.sges_of_a_read)
        } else {
            self.sges
        };
        for (what, limit, needed, flags) in [
            ("QPs", self.qps, u64::from(flow.qps), "--qps"),
            ("CQs", self.cqs, needs.cqs.into(), "--qps, or use --cq shared"),
            (
                "send WRs on one QP",
                self.wrs_of_a_queue,
                needs.capacity.send_wr.into(),
                "--tx-depth",
            ),
            (
                "receive WRs on one QP",
                self.wrs_of_a_queue,
                needs.capacity.recv_wr.into(),
                "--rx-depth",
            ),
            (
                "receives on one SRQ",
                self.receives_of_an_srq,
                needs.srq_wrs.unwrap_or(0).into(),
                "--rx-depth",
            ),
            (
                "SGEs in one WR",
                if roles.sends { sges_of_sends } else { self.sges },
                flow.sges.into(),
                "--sges",
            ),
            (
                "SGEs in one receive of an SRQ",
                self.sges_of_an_srq,
                if needs.srq_wrs.is_some() { flow.sges.into() } else { 0 },
                "--sges",
            ),
            (
                "entries in one CQ",
                self.entries_of_a_cq,
                needs.cq_entries.into(),
                "--qps, --rx-depth or --tx-depth, or use --cq per-qp",
            ),
            ("bytes in one message", self.message_bytes, flow.size_bytes.into(), "--size"),
        ] {
            self.allow(what, limit, needed, flags)?;
        }
        Ok(())
    }

    /// Checks that the device has the calls that the flow is to use.
    fn check_calls(&self, flow: &Settings) -> Result<(), VerbsError> {
        let extended = CallStyle::Extended;
        let missing = [
            (
                flow.post == extended && !self.has_extended_post,
                "extended posting (ibv_wr_start)",
                "use --post legacy",
            ),
            (
                flow.post == extended && flow.sges > 1 && !self.has_extended_lists,
                "correct extended posting of several elements: its library adds up their lengths wrongly",
                "use --sges 1 or --post legacy",
            ),
            (
                flow.poll_api == extended && !self.has_extended_poll,
                "extended polling (ibv_start_poll)",
                "use --poll-api legacy",
            ),
            (
                flow.domains == Domains::Thread && !self.has_thread_domains,
                "single-threaded CQs and thread domains",
                "use --domains usual",
            ),
            (
                flow.udp_sport.is_some() && !self.takes_udp_ports,
                "call for a QP's UDP source port (only mlx5 over RoCE has one)",
                "use --flow-label, from which many drivers derive the port",
            ),
            (
                flow.timestamps == Timestamps::Device && !self.has_stamps,
                "time stamps of completions with a clock that can be read",
                "use --timestamps cpu",
            ),
        ];
        match missing.into_iter().find(|(is_missing, ..)| *is_missing) {
            Some((_, what, instead)) => Err(self.lacks(what, instead)),
            None => Ok(()),
        }
    }

    /// Checks that the device can limit QPs of `service` to this rate.
    fn check_pace(&self, service: Service, kbit_per_s: u64) -> Result<(), VerbsError> {
        let Some(paces) = self.paces.as_ref().filter(|paces| paces.services.contains(&service))
        else {
            return Err(self.lacks(
                "rate limit for QPs with this --service, as --pace device needs",
                "take --pace worker, or another --service or device",
            ));
        };
        if kbit_per_s < paces.least_kbit_per_s.into() {
            return Err(self.lacks(
                "rate limit as low as each QP's part of --rate with --pace device",
                "raise --rate, lower --qps, or take --pace worker",
            ));
        }
        let most = paces.most_kbit_per_s.into();
        self.allow("kbit/s of one QP", most, kbit_per_s, "--rate")
    }

    fn allow(
        &self,
        what: &'static str,
        limit: u64,
        needed: u64,
        flags: &'static str,
    ) -> Result<(), VerbsError> {
        if limit == 0 || needed <= limit {
            return Ok(());
        }
        Err(VerbsError::DeviceLimit { device: self.device.clone(), what, limit, needed, flags })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_no_longer_than_the_ports_mtu() {
        let limits = DeviceLimits {
            device: "soft1".to_owned(),
            packet_bytes: 1024,
            ..DeviceLimits::default()
        };
        let check = |service, size| {
            let flow = Settings::from([("service", service), ("size", size)]);
            let checked = limits.check_flow(&flow, Side::Target);
            checked.map_err(|error| error.to_string())
        };
        assert_eq!(check("ud", "1K"), Ok(()));
        assert_eq!(check("uc", "4K"), Ok(()));
        let told = "soft1 can do at most 1024 bytes in one datagram, by its port's MTU, but the case needs 1025";
        assert_eq!(check("ud", "1025"), Err(told.to_owned()));
    }

    /// mlx5 paces raw packets alone.
    #[test]
    fn a_rate_that_the_device_keeps_for_other_qps_alone_is_refused() {
        let paces = PacedRates {
            least_kbit_per_s: 1_000,
            most_kbit_per_s: 100_000_000,
            services: Vec::new(),
        };
        let limits = DeviceLimits {
            device: "mlx5_0".to_owned(),
            paces: Some(paces),
            ..DeviceLimits::default()
        };
        let flow = Settings::from([("rate", "10Gb"), ("pace", "device")]);
        let error = limits.check_flow(&flow, Side::Initiator).unwrap_err();
        let told = "mlx5_0 has no rate limit for QPs with this --service, as --pace device needs";
        assert_eq!(error.to_string(), told);
        assert!(error.hint().unwrap().contains("--pace worker"));
    }

    #[test]
    fn a_service_without_qps_is_refused_with_another_that_has_some() {
        let limits = DeviceLimits {
            device: "bnxt_re0".to_owned(),
            lacks_services: vec![Service::Uc],
            ..DeviceLimits::default()
        };
        let check = |service| {
            let checked = limits.check_flow(&Settings::from([("service", service)]), Side::Target);
            checked.map_err(|error| (error.to_string(), error.hint()))
        };
        assert_eq!(check("rc"), Ok(()));
        let (told, hint) = check("uc").unwrap_err();
        assert_eq!(told, "bnxt_re0 has no UC QPs");
        assert_eq!(hint.as_deref(), Some("use --service rc"));
    }
}
