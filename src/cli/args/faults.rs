//! Faults of `--faults`, of all devices of this end or of one: `rate=1G;soft1:drop=1%`.

use std::str::FromStr;

use crate::node::resources::Faults;

/// Faults of this end's devices.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FaultsOfDevices {
    /// Of all devices without faults of their own.
    pub default: Option<Faults>,
    /// Of the devices of these names.
    pub of: Vec<(String, Faults)>,
}

impl FromStr for FaultsOfDevices {
    type Err = <Faults as FromStr>::Err;

    fn from_str(text: &str) -> Result<FaultsOfDevices, Self::Err> {
        let mut faults = FaultsOfDevices::default();
        for part in text.split(';') {
            // The value of `peer` may be an IPv6 address.
            match part.split_once(':').filter(|(name, _)| !name.contains('=')) {
                Some((name, of)) => faults.of.push((name.trim().to_owned(), of.parse()?)),
                None => faults.default = Some(part.parse()?),
            }
        }
        Ok(faults)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_of_all_devices_or_of_those_that_are_named() {
        let of = |text: &str| text.parse::<FaultsOfDevices>().unwrap();
        let [drop, rate] = ["drop=1%", "rate=1G"].map(|text| text.parse::<Faults>().unwrap());
        assert_eq!(of("drop=1%").default, Some(drop));
        let both = of("drop=1%;soft1:rate=1G");
        assert_eq!((both.default, &both.of[..]), (Some(drop), &[("soft1".to_owned(), rate)][..]));
        assert_eq!(of("soft1:rate=1G").default, None);
        assert!(of("drop=1%,peer=fd00::1").of.is_empty());
        assert!("soft1:nothing=1".parse::<FaultsOfDevices>().is_err());
    }
}
