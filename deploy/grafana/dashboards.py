#!/usr/bin/env python3
"""Writes Grafana's dashboards: fleet.json for all workers together, model.json for one model.

    deploy/grafana/dashboards.py            writes them beside this file
    deploy/grafana/dashboards.py --check    says whether they are as this program writes them
    deploy/grafana/dashboards.py --rules    prints every query as a rule, for promtool to read

A dashboard's JSON is long and says little; here a panel is a line. Import the files, or let Grafana provision them
(docker-compose.yml, profile `metrics`).
"""

import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = {"type": "prometheus", "uid": "${source}"}
WIDTH, HEIGHT = 8, 8  # three panels in a row of 24


def panel(title, queries, unit="short", description="", kind="timeseries", most=None):
    """One panel. `queries` are (legend, PromQL)."""
    field = {"unit": unit, "min": 0}
    if most is not None:
        field["max"] = most
    return {
        "type": kind,
        "title": title,
        "description": description,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": field, "overrides": []},
        "options": {"tooltip": {"mode": "multi"}} if kind == "timeseries" else {"reduceOptions": {"calcs": ["lastNotNull"]}},
        "targets": [
            {"datasource": SOURCE, "expr": query, "legendFormat": legend, "refId": chr(ord("A") + number)}
            for number, (legend, query) in enumerate(queries)
        ],
    }


def fleet():
    return [
        panel("Workers", [("live", "max(tidegate_workers)"), ("of use", 'ceil(sum(tidegate_admissible_documents) / 200)')],
              description="Of use: as many as the limits could keep busy with what waits; 200 is max-concurrent-documents."),
        panel("Batches", [("{{state}}", 'max by (state) (tidegate_batches{state=~"running|paused|failed"})')],
              description="From Temporal's list: those that failed are shown for as long as it keeps them."),
        panel("Documents a minute", [("{{outcome}}", "sum by (outcome) (rate(tidegate_documents_total[5m])) * 60")]),
        panel("US dollars an hour", [("{{tenant}}", "sum by (tenant) (rate(tidegate_cost_usd_total[15m])) * 3600")], unit="currencyUSD"),
        panel("Use of the limits", [("{{model}} {{dimension}}", "max by (model, dimension) (tidegate_quota_used / tidegate_quota_limit)")],
              unit="percentunit", most=1, description="Of what may be admitted in one window; the margin is taken off already."),
        panel("Refused by providers (429)", [("{{model}}", 'sum by (model) (rate(tidegate_provider_calls_total{outcome="rate_limited"}[5m])) / sum by (model) (rate(tidegate_provider_calls_total[5m]))')],
              unit="percentunit", description="There should be almost none."),
        panel("Provider calls for each document", [("{{instance}}", "tidegate_calls_per_document")], description="1 is perfect."),
        panel("Gates closed", [("{{model}}", "max by (model) (tidegate_gate_closed)")], unit="s", description="Seconds until they open."),
        panel("Calls that wait", [("{{model}} {{lane}}", "max by (model, lane) (tidegate_queue_depth)")]),
        panel("Calls in flight", [("{{model}} {{lane}}", "sum by (model, lane) (tidegate_in_flight)")]),
        panel("Providers that fail", [("{{model}}", "max by (model) (tidegate_circuit_open)")], most=1),
        panel("Budget left today", [("{{tenant}}", "min by (tenant) (tidegate_budget_left_usd / tidegate_budget_usd)")], unit="percentunit", most=1),
        panel("Wrong now", [
            ("Temporal away", "sum(tidegate_temporal_away)"),
            ("Redis away", "sum(tidegate_redis_degraded)"),
            ("key of {{provider}} refused", "sum by (provider) (tidegate_key_refused)"),
            ("answers unwritten", "sum(tidegate_unwritten_answers)"),
            ("answers in spools", "max(tidegate_spooled_answers)"),
            ("configurations", "count(count by (configuration) (tidegate_build_info)) - 1"),
        ], description="All of it is 0 when all is well."),
        panel("Slots of activities in use", [("{{instance}}", 'sum by (instance) (temporal_worker_task_slots_used{worker_type="ActivityWorker"})')]),
        panel("Versions", [("{{version}} {{configuration}}", "count by (version, configuration) (tidegate_build_info)")]),
        panel("Pollers of Temporal", [("{{poller_type}}", "sum by (poller_type) (temporal_num_pollers)")], description="None: the workers do not hear of work."),
    ]


def model():
    of = 'model="$model"'
    return [
        panel("Tokens a minute", [("{{kind}}", f"sum by (kind) (rate(tidegate_tokens_total{{{of}}}[5m])) * 60")]),
        panel("Use and limit", [("used: {{dimension}}", f"max by (dimension) (tidegate_quota_used{{{of}}})"), ("limit: {{dimension}}", f"max by (dimension) (tidegate_quota_limit{{{of}}})")],
              description="In one window, by the whole fleet. The limit is the one in force, margin and corrections included."),
        panel("Calls by how they ended", [("{{outcome}}", f"sum by (outcome) (rate(tidegate_provider_calls_total{{{of}}}[5m])) * 60")]),
        panel("Time of a call", [(quantile, f"histogram_quantile({number}, sum by (le) (rate(tidegate_provider_call_seconds_bucket{{{of}}}[5m])))") for quantile, number in (("median", 0.5), ("p95", 0.95), ("p99", 0.99))], unit="s"),
        panel("Wait for quota, in one attempt", [("{{lane}} p95", f"histogram_quantile(0.95, sum by (le, lane) (rate(tidegate_quota_wait_seconds_bucket{{{of}}}[5m])))")], unit="s",
              description="From the first question to admission. Longer waits go back to Temporal and are not in here."),
        panel("Refusals by the limiter", [("{{dimension}}", f"sum by (dimension) (rate(tidegate_denials_total{{{of}}}[5m])) * 60")],
              description="What bound. A refusal is a wait, not a failure."),
        panel("Calls in flight", [("in flight: {{lane}}", f"sum by (lane) (tidegate_in_flight{{{of}}})"), ("rate × time", f"sum(tidegate_little_l{{{of}}})")]),
        panel("Calls that wait", [("{{lane}}", f"max by (lane) (tidegate_queue_depth{{{of}}})")]),
        panel("Gate", [("closed for", f"max(tidegate_gate_closed{{{of}}})")], unit="s"),
        panel("Pauses", [("{{reason}}", f"sum by (reason) (increase(tidegate_pauses_total{{{of}}}[15m]))")]),
        panel("Read from the prompt cache", [("{{instance}}", f"tidegate_cache_hit_ratio{{{of}}}")], unit="percentunit", most=1),
        panel("US dollars an hour", [("{{tenant}}", f"sum by (tenant) (rate(tidegate_cost_usd_total{{{of}}}[15m])) * 3600")], unit="currencyUSD"),
    ]


def dashboard(uid, title, panels, variables=()):
    for number, it in enumerate(panels):
        it["id"] = number + 1
        it["gridPos"] = {"x": number % 3 * WIDTH, "y": number // 3 * HEIGHT, "w": WIDTH, "h": HEIGHT}
    source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    return {
        "uid": uid,
        "title": title,
        "tags": ["tidegate"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "15s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source, *variables]},
        "links": [{"type": "dashboards", "tags": ["tidegate"], "title": "tidegate", "asDropdown": False}],
        "panels": panels,
    }


def main():
    chosen = {
        "name": "model",
        "type": "query",
        "label": "Model",
        "datasource": SOURCE,
        "query": {"query": "label_values(tidegate_quota_limit, model)", "refId": "models"},
        "refresh": 2,
        "sort": 1,
    }
    written = {
        "fleet.json": dashboard("tidegate-fleet", "tidegate: the fleet", fleet()),
        "model.json": dashboard("tidegate-model", "tidegate: one model", model(), [chosen]),
    }
    if sys.argv[1:] == ["--rules"]:
        queries = [target["expr"] for content in written.values() for it in content["panels"] for target in it["targets"]]
        rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries)]
        # JSON is YAML.
        print(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
        return
    stale = []
    for name, content in written.items():
        text = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        if sys.argv[1:] == ["--check"]:
            if (HERE / name).read_text() != text:
                stale.append(name)
        else:
            (HERE / name).write_text(text)
    if stale:
        sys.exit(f"deploy/grafana: {', '.join(stale)} differs from what dashboards.py writes; run it")


if __name__ == "__main__":
    main()
