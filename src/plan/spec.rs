//! What was asked for, before it is expanded: every setting that a flag or a file may give, and
//! `None` for what neither did. It holds values that parsed, not values that make sense together.

use super::{ConnectMode, Count, CqMode, List, Mtu, PollMode, Size, TimeSpan, Warmup, Workload};

/// A sweep as asked for. Fields are named as the long flags; see `rocebench --help`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct SweepSpec {
    pub op: Option<List<Workload>>,
    pub cq: Option<List<CqMode>>,
    pub poll: Option<List<PollMode>>,
    pub connect: Option<List<ConnectMode>>,
    pub size: Option<List<Size>>,
    pub qps: Option<List<Count>>,
    pub traffic_qps: Option<List<Count>>,
    pub workers: Option<List<Count>>,
    pub tx_depth: Option<List<Count>>,
    pub rx_depth: Option<List<Count>>,
    pub signal_every: Option<List<Count>>,
    pub post_list: Option<List<Count>>,
    pub inline: Option<List<Size>>,
    pub mtu: Option<List<Mtu>>,
    pub bidirectional: Option<bool>,
    pub duration: Option<TimeSpan>,
    pub iters: Option<Count>,
    pub warmup: Option<Warmup>,
    pub runs: Option<Count>,
    pub verify: Option<bool>,
    pub no_latency: Option<bool>,
    pub cq_depth: Option<Count>,
    pub timeout: Option<Count>,
    pub retry_cnt: Option<Count>,
    pub rnr_retry: Option<Count>,
    pub min_rnr_timer: Option<Count>,
    pub max_rd_atomic: Option<Count>,
    pub service_level: Option<Count>,
    pub traffic_class: Option<Count>,
}

impl SweepSpec {
    /// These settings over those of `base`, one by one. `duration` and `iters` are one setting: the
    /// end of a measurement.
    pub fn over(self, base: SweepSpec) -> SweepSpec {
        let stops_itself = self.duration.is_some() || self.iters.is_some();
        let (base_duration, base_iters) = if stops_itself {
            (None, None)
        } else {
            (base.duration, base.iters)
        };
        SweepSpec {
            op: self.op.or(base.op),
            cq: self.cq.or(base.cq),
            poll: self.poll.or(base.poll),
            connect: self.connect.or(base.connect),
            size: self.size.or(base.size),
            qps: self.qps.or(base.qps),
            traffic_qps: self.traffic_qps.or(base.traffic_qps),
            workers: self.workers.or(base.workers),
            tx_depth: self.tx_depth.or(base.tx_depth),
            rx_depth: self.rx_depth.or(base.rx_depth),
            signal_every: self.signal_every.or(base.signal_every),
            post_list: self.post_list.or(base.post_list),
            inline: self.inline.or(base.inline),
            mtu: self.mtu.or(base.mtu),
            bidirectional: self.bidirectional.or(base.bidirectional),
            duration: self.duration.or(base_duration),
            iters: self.iters.or(base_iters),
            warmup: self.warmup.or(base.warmup),
            runs: self.runs.or(base.runs),
            verify: self.verify.or(base.verify),
            no_latency: self.no_latency.or(base.no_latency),
            cq_depth: self.cq_depth.or(base.cq_depth),
            timeout: self.timeout.or(base.timeout),
            retry_cnt: self.retry_cnt.or(base.retry_cnt),
            rnr_retry: self.rnr_retry.or(base.rnr_retry),
            min_rnr_timer: self.min_rnr_timer.or(base.min_rnr_timer),
            max_rd_atomic: self.max_rd_atomic.or(base.max_rd_atomic),
            service_level: self.service_level.or(base.service_level),
            traffic_class: self.traffic_class.or(base.traffic_class),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_layer_wins_key_by_key() {
        let flags = SweepSpec {
            qps: Some("4".parse().unwrap()),
            verify: Some(false),
            ..SweepSpec::default()
        };
        let file = SweepSpec {
            qps: Some("1,2".parse().unwrap()),
            verify: Some(true),
            size: Some("64".parse().unwrap()),
            ..SweepSpec::default()
        };
        let both = flags.clone().over(file.clone());
        assert_eq!(
            (both.qps, both.verify, both.size),
            (flags.qps, Some(false), file.size)
        );
    }

    #[test]
    fn iters_replace_a_duration_below() {
        let flags = SweepSpec {
            iters: Some(Count(10)),
            ..SweepSpec::default()
        };
        let file = SweepSpec {
            duration: TimeSpan::from_ns(1),
            ..SweepSpec::default()
        };
        let both = flags.over(file.clone());
        assert_eq!((both.duration, both.iters), (None, Some(Count(10))));
        assert_eq!(SweepSpec::default().over(file.clone()), file);
    }
}
