"""Kubernetes objects as frozen, typed facts, and the only definition of each Kubernetes rule about them.

Quantities, labels and selectors, taints and tolerations, pod requests, host ports: whoever needs one of these rules, for
one object or for a column of values, finds it here. The room knows no cluster, no plugin and no I/O.
"""

from stowplan.objects.admission import Priorities
from stowplan.objects.amounts import (
    Amounts,
    from_resource_list,
    is_attachable_volume,
    is_dra_extended,
    is_extended,
    is_hugepages,
    is_native,
    is_prefixed_native,
    is_scalar,
)
from stowplan.objects.errors import ObjectError
from stowplan.objects.labels import Labels, Requirement, Selector, conjunction, label_selector, match_labels, requirement
from stowplan.objects.node import KNOWN_FEATURES, Node
from stowplan.objects.nodeselector import (
    NodeSelector,
    NodeTerm,
    PreferredTerm,
    node_selector,
    node_term,
    parse_error,
    preferred_terms,
)
from stowplan.objects.others import DeviceClass, DisruptionBudget, Namespace, PriorityClass, Workload
from stowplan.objects.pod import HostPort, Owner, Pod, PodSpec, PodTerm, SpreadConstraint
from stowplan.objects.podreader import image_key
from stowplan.objects.qualified import is_qualified_name
from stowplan.objects.quantity import QuantityError, milli, parse, show, whole
from stowplan.objects.read import Fact, OtherFact, peek, read
from stowplan.objects.taints import Taint, Toleration, Tolerations

__all__ = [
    "KNOWN_FEATURES",
    "Amounts",
    "DeviceClass",
    "DisruptionBudget",
    "Fact",
    "HostPort",
    "Labels",
    "Namespace",
    "Node",
    "NodeSelector",
    "NodeTerm",
    "ObjectError",
    "OtherFact",
    "Owner",
    "Pod",
    "PodSpec",
    "PodTerm",
    "PreferredTerm",
    "Priorities",
    "PriorityClass",
    "QuantityError",
    "Requirement",
    "Selector",
    "SpreadConstraint",
    "Taint",
    "Toleration",
    "Tolerations",
    "Workload",
    "conjunction",
    "from_resource_list",
    "image_key",
    "is_attachable_volume",
    "is_dra_extended",
    "is_extended",
    "is_hugepages",
    "is_native",
    "is_prefixed_native",
    "is_qualified_name",
    "is_scalar",
    "label_selector",
    "match_labels",
    "milli",
    "node_selector",
    "node_term",
    "parse",
    "parse_error",
    "peek",
    "preferred_terms",
    "read",
    "requirement",
    "show",
    "whole",
]
