"""Texts with thousands of errors or warnings: the first are told, and how many more there are, wherever that is."""

from __future__ import annotations

import asyncio
import json
import logging

from stowplan.edge.load import load_policy
from stowplan.edge.policies.following import _lobby
from stowplan.edge.policies.keeper import described
from stowplan.edge.policies.telling import MOST, PolicyLog
from stowplan.edge.serve import Asked
from stowplan.edge.serve.configz import FINDINGS, InForce, configz
from stowplan.edge.serve.policy import policy
from unit.edge.policies.offering import document, keeper, offer

WRONG = document(*["node.allocatable.cpu + true"] * 1000)
NOTHING = Asked({}, {}, "", local=True)


def told(caplog):
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_many_errors(caplog):
    kept, _ = keeper(document())
    kept.listeners.append(PolicyLog())
    asyncio.run(kept.offer(offer(WRONG)))
    errors = len(kept.refused.errors)
    assert errors >= 1000
    messages = told(caplog)
    assert messages == ["policy rejected"] * MOST + [f"and {errors - MOST} more errors; `stowplan validate` shows them"]
    in_force = InForce(load_policy(), 0, "policy.yaml", described(kept))
    for page in (policy(lambda: in_force, dict), configz(lambda: in_force)):
        shown = json.loads(page.answer(NOTHING).body)
        found = shown.get("policy", shown)["rejected"]["errors"]
        assert len(found) == FINDINGS + 1
        assert found[-1] == f"and {errors - FINDINGS} more"
    assert len(kept.note()) < 1000


def test_many_errors_before_there_is_a_policy():
    kept, _ = keeper()
    asyncio.run(kept.offer(offer(WRONG)))
    for page in _lobby(kept)._pages:
        if page.path in ("/policy", "/configz"):
            shown = json.loads(page.answer(NOTHING).body)
            assert len(shown.get("policy", shown)["rejected"]["errors"]) == FINDINGS + 1


def test_few_are_shown_as_they_are(caplog):
    kept, _ = keeper(document())
    kept.listeners.append(PolicyLog())
    asyncio.run(kept.offer(offer(document(*["node.allocatable.cpu + true"] * 2))))
    assert told(caplog) == ["policy rejected"] * 2
    shown = json.loads(policy(lambda: InForce(load_policy(), 0, "", described(kept)), dict).answer(NOTHING).body)
    assert len(shown["rejected"]["errors"]) == 2
