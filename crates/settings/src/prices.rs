//! What does a pod cost for an hour?
//!
//! A ConfigMap has a price of a core and a price of a GiB of memory. Each is written with its currency, so
//! that no reader takes cents for euros, and both have one currency, so that they can be added up. A pod
//! costs these times what it requests: what it uses above that is not reserved for it.

use serde::{Deserialize, Serialize};

use super::hourly_price::{Currency, HourlyPrice};
use super::keys::config_map as keys;
use super::reader::SettingsReader;
use crate::hpa::{PodRequests, ResourceName};

/// The thousandths of a byte in a GiB.
const GIB_MILLI: f64 = 1024.0 * 1024.0 * 1024.0 * 1000.0;
/// The thousandths of a core in a core.
const CORE_MILLI: f64 = 1000.0;

/// The prices of what pods request, as far as a ConfigMap gives them; of one currency.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResourcePrices {
    /// `price-per-cpu-hour`: the price of a core.
    pub per_cpu: Option<HourlyPrice>,
    /// `price-per-gib-hour`: the price of a GiB of memory.
    pub per_gib: Option<HourlyPrice>,
}

impl ResourcePrices {
    /// Reads the prices of the ConfigMap.
    pub(super) fn of_cluster(reader: &mut SettingsReader<'_>) -> Self {
        let prices = Self {
            per_cpu: reader.price(&keys::PRICE_PER_CPU_HOUR),
            per_gib: reader.price(&keys::PRICE_PER_GIB_HOUR),
        };
        if let (Some(cpu), Some(gib)) = (prices.per_cpu, prices.per_gib)
            && cpu.currency() != gib.currency()
        {
            let flaw = format!(
                "has another currency than {} {cpu}; write both prices in one currency",
                keys::PRICE_PER_CPU_HOUR.name
            );
            reader.refuse_present(&keys::PRICE_PER_GIB_HOUR, &flaw);
        }
        prices
    }

    /// The currency of the prices; `None` without any price.
    pub fn currency(&self) -> Option<Currency> {
        self.per_cpu.or(self.per_gib).map(HourlyPrice::currency)
    }

    /// The price of a pod that requests this; `None` if no requested resource has a price. A container that
    /// requests nothing of a resource counts as nothing.
    pub fn of_pod(&self, requests: &PodRequests) -> Option<HourlyPrice> {
        let part = |price: Option<HourlyPrice>, resource: &ResourceName, unit_milli: f64| {
            Some(price?.amount() * requests.sum_of(resource)?.as_f64() / unit_milli)
        };
        let cpu = part(self.per_cpu, &ResourceName::Cpu, CORE_MILLI);
        let memory = part(self.per_gib, &ResourceName::Memory, GIB_MILLI);
        if cpu.is_none() && memory.is_none() {
            return None;
        }
        let amount = cpu.unwrap_or_default() + memory.unwrap_or_default();
        Some(HourlyPrice::new(amount, self.currency()?))
    }
}

#[cfg(test)]
mod tests {
    use vocabulary::MilliValue;

    use super::*;
    use crate::hpa::{ContainerRequests, ResourceRequests};

    fn price(text: &str) -> HourlyPrice {
        HourlyPrice::parse(text).expect("a price")
    }

    fn container(cpu_milli: Option<i64>, memory_mib: Option<i64>) -> ContainerRequests {
        let memory = memory_mib.map(|mib| MilliValue::new(mib * 1024 * 1024 * 1000));
        let requests = ResourceRequests { cpu: cpu_milli.map(MilliValue::new), memory, others: Vec::new() };
        ContainerRequests { name: "app".into(), requests }
    }

    #[test]
    fn a_pod_costs_what_its_containers_request_together() {
        let prices = ResourcePrices { per_cpu: Some(price("0.04 USD")), per_gib: Some(price("0.005 USD")) };
        let of = |containers: Vec<ContainerRequests>| {
            prices.of_pod(&PodRequests { pod_level: None, containers }).map(|price| price.to_string())
        };
        assert_eq!(of(vec![container(Some(500), Some(2048))]).as_deref(), Some("0.03 USD"));
        // A sidecar without requests costs nothing.
        let beside = vec![container(Some(500), Some(2048)), container(None, None)];
        assert_eq!(of(beside).as_deref(), Some("0.03 USD"));
        assert_eq!(of(vec![container(None, Some(1024))]).as_deref(), Some("0.005 USD"));
        assert_eq!(of(vec![container(None, None)]), None);
        let memory_alone = ResourcePrices { per_cpu: None, ..prices };
        let requests = PodRequests { pod_level: None, containers: vec![container(Some(500), None)] };
        assert_eq!(memory_alone.of_pod(&requests), None, "what is requested has no price");
        assert_eq!(ResourcePrices::default().of_pod(&requests), None);
    }
}
