//! Models and lanes as Python's side states them, by the rules of `tidegate.toml`.

use std::{sync::Arc, time::Duration};

use pyo3::prelude::*;
use tidegate_providers::Vendor;
use tidegate_quota::{ConfiguredLimits, Lanes, ModelQuota, Share, configured_limits::Algorithm};
use tidegate_types::{Charge, Lane};

use crate::{listener::vendor, runtime::bad};

/// One model's section.
#[derive(FromPyObject)]
pub(crate) struct Model {
    #[pyo3(item)]
    name: String,
    /// None where nothing is known of the provider.
    #[pyo3(item)]
    vendor: Option<String>,
    /// None for the vendor's own host.
    #[pyo3(item)]
    endpoint: Option<String>,
    #[pyo3(item)]
    group: Option<String>,
    #[pyo3(item)]
    rpm: Option<u64>,
    #[pyo3(item)]
    rps: Option<u64>,
    #[pyo3(item)]
    tpm: Option<u64>,
    #[pyo3(item)]
    itpm: Option<u64>,
    #[pyo3(item)]
    otpm: Option<u64>,
    #[pyo3(item)]
    rpd: Option<u64>,
    #[pyo3(item)]
    tpd: Option<u64>,
    #[pyo3(item)]
    concurrent: Option<u64>,
    #[pyo3(item)]
    day_begins: Option<f64>,
    #[pyo3(item)]
    burst: Option<f64>,
    #[pyo3(item)]
    window: Option<f64>,
    #[pyo3(item)]
    margin: Option<f64>,
    #[pyo3(item)]
    algorithm: Option<String>,
    #[pyo3(item)]
    output_weight: Option<f64>,
}

fn time(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds).map_err(bad)
}

impl Model {
    pub(crate) fn quota(self, lanes: &Arc<Lanes>) -> PyResult<ModelQuota> {
        let name = self.name.clone();
        let named = |error: &dyn std::fmt::Display| bad(format!("models.\"{name}\": {error}"));
        let id = self.name.parse().map_err(|error| named(&error))?;
        let vendor = self.vendor.as_deref().map(vendor).transpose()?;
        let charge = vendor.map_or(Charge::CAUTIOUS, Vendor::charge);
        let charge =
            Charge { output_weight: self.output_weight.unwrap_or(charge.output_weight), ..charge };
        let usual = vendor.is_some_and(|vendor| {
            let own = || vendor.base_url("us-east-1");
            vendor.has_token_buckets(&self.endpoint.clone().unwrap_or_else(own))
        });
        let usual = if usual { Algorithm::TokenBucket } else { Algorithm::Unknown };
        let algorithm = match self.algorithm.as_deref() {
            None => None,
            Some("unknown") => Some(Algorithm::Unknown),
            Some("token-bucket") => Some(Algorithm::TokenBucket),
            Some(other) => {
                let what = format!("algorithm is \"{other}\"; write unknown or token-bucket");
                return Err(named(&what));
            }
        };
        let stated = ConfiguredLimits {
            rpm: self.rpm,
            rps: self.rps,
            tpm: self.tpm,
            itpm: self.itpm,
            otpm: self.otpm,
            rpd: self.rpd,
            tpd: self.tpd,
            day_begins: time(self.day_begins.unwrap_or(0.0))?,
            concurrent: self.concurrent,
            burst: self.burst.map(time).transpose()?,
            algorithm,
            margin: self.margin,
            window: self.window.map(time).transpose()?,
        };
        let model = ModelQuota::new(id, stated.limits(usual), charge, Arc::clone(lanes));
        let model = model.map_err(|error| named(&error))?;
        Ok(match self.group {
            Some(group) => model.sharing(&group),
            None => model,
        })
    }
}

/// Each with its share and the most that it may borrow.
pub(crate) fn lanes(stated: Vec<(String, f64, f64)>) -> PyResult<Arc<Lanes>> {
    let lane = |(name, guaranteed, ceiling): (String, f64, f64)| {
        Ok((Lane::new(name).map_err(bad)?, Share { guaranteed, ceiling }))
    };
    let lanes = stated.into_iter().map(lane).collect::<PyResult<_>>()?;
    Lanes::new(lanes).map(Arc::new).map_err(bad)
}
