"""What each kind of finding means, for `stowplan rule` and for reports; every code has an entry."""

from __future__ import annotations

from dataclasses import dataclass

from stowplan.text import Code


@dataclass(frozen=True, slots=True)
class Text:
    """A kind of finding: what it is called, why it matters, what to do, and an example of what causes it."""

    title: str
    why: str
    remedy: str
    example: str = ""


_HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
_SCORE = "profiles:\n- plugins:\n    score:\n      enabled:\n"

TEXTS: dict[Code, Text] = {
    Code.UNKNOWN_FIELD: Text(
        "unknown field",
        "kube-scheduler decodes strictly: a field that it does not know stops it. Names are case-sensitive.",
        "Correct the name, or indent it to where it belongs.",
        _HEAD + "clientConnection:\nkubeconfig: /etc/kubernetes/scheduler.conf",
    ),
    Code.WRONG_TYPE: Text(
        "value of a wrong type",
        "The value cannot be read as what the field holds. YAML 1.1 takes yes, no, on and off for booleans, and 0123 for octal.",
        "Write a value of the type that the message names; quote what is meant as a string.",
        'parallelism: "16"',
    ),
    Code.SYNTAX: Text(
        "not YAML or JSON",
        "The text cannot be read at all; nothing after this place was looked at.",
        "Mend the place. Tabs must not indent YAML; a text that starts with { is read as JSON.",
    ),
    Code.DUPLICATE_KEY: Text(
        "a key twice",
        "kube-scheduler refuses a mapping that has a key twice, also if one of them comes from a merge key (<<).",
        "Keep one of them; do not override what << brings.",
        "parallelism: 4\nparallelism: 8",
    ),
    Code.BAD_ALIAS: Text(
        "an alias that cannot be followed",
        "An alias (*name) must come after its anchor (&name), outside of it, and must not multiply the document beyond reason.",
        "Write the value out.",
    ),
    Code.MORE_DOCUMENTS: Text(
        "documents that are not read",
        "kube-scheduler reads the first document of a file and ignores the others.",
        "Put each configuration into a file of its own.",
    ),
    Code.NOT_A_MAPPING: Text("no mapping", "A configuration is a mapping of names to values.", "Start with apiVersion and kind."),
    Code.NO_KIND: Text(
        "no apiVersion or kind",
        "kube-scheduler finds out by apiVersion and kind how to read a file.",
        f"Start with:\n{_HEAD}",
    ),
    Code.UNKNOWN_KIND: Text(
        "another kind of object",
        "kube-scheduler 1.37 reads kubescheduler.config.k8s.io/v1 KubeSchedulerConfiguration and nothing else.",
        "Correct apiVersion and kind, or name another file.",
    ),
    Code.OLD_VERSION: Text(
        "an older apiVersion",
        "This version of the configuration was read by an older kube-scheduler. It is checked as what it converts to.",
        "stowplan convert --to v1 FILE",
        "apiVersion: kubescheduler.config.k8s.io/v1beta2\nkind: KubeSchedulerConfiguration",
    ),
    Code.TEMPLATE: Text(
        "a template",
        "Helm and Jinja templates are no YAML before they are rendered.",
        "helm template CHART | stowplan validate -",
    ),
    Code.PLACEHOLDER: Text(
        "a placeholder that was left",
        "The text looks like something that was to be replaced.",
        "Write the value.",
        "clientConnection: {kubeconfig: REPLACE_ME}",
    ),
    Code.OTHER_OBJECT: Text("another object", "The document is no scheduler configuration and was not checked.", "Nothing to do."),
    Code.WRAPPED: Text(
        "a configuration inside something",
        "The configuration was found and checked, but kube-scheduler does not find it: it reads the first document of a file.",
        "Put it into a file of its own.",
    ),
    Code.EMPTY: Text("empty", "A key without a value is the same as no key.", "Remove it, or write the value that is missing."),
    Code.TOO_MANY: Text("more findings than are shown", "Something is wrong with the file as a whole.", "Mend the first ones."),
    Code.UNREADABLE: Text(
        "unreadable",
        "The file or folder cannot be read, or holds no configuration. Pipes and sockets inside a folder are passed over.",
        "Name another one.",
    ),
    Code.CONVERTED: Text(
        "what an older version becomes",
        "The newest version says this in another way; `stowplan convert` writes it.",
        "stowplan convert --to v1 FILE",
    ),
    Code.INVALID: Text("invalid value", "kube-scheduler refuses the value.", "Choose one in the range that the message names."),
    Code.REQUIRED: Text(
        "a value is missing",
        "kube-scheduler needs the value and has no default for it. With several profiles each needs a schedulerName.",
        "Write it.",
    ),
    Code.DUPLICATE: Text("duplicate value", "The value must be unique in its list.", "Remove or rename one of them."),
    Code.UNSUPPORTED: Text("unsupported value", "The value is none of those allowed.", "Take one that the message names."),
    Code.FORBIDDEN: Text("forbidden value", "The value must not be there, given the others.", "Remove it, or change the others."),
    Code.NO_SUCH_PLUGIN: Text(
        "no such plugin",
        "kube-scheduler stops when a profile enables a plugin that is not built in.",
        "Correct the name.",
        f"{_SCORE}      - name: NodeResourceFit",
    ),
    Code.WRONG_POINT: Text(
        "a plugin at a point it does not implement",
        "Each plugin runs at certain extension points, and kube-scheduler stops when one is enabled elsewhere.",
        "Enable it at one of the points that the message names.",
        f"{_SCORE}      - name: NodeName",
    ),
    Code.ENABLED_TWICE: Text(
        "a plugin twice in a list",
        "kube-scheduler stops when a list enables a plugin twice. Listing a default plugin once re-configures it.",
        "Keep one of the entries.",
    ),
    Code.QUEUE_SORT: Text(
        "queueSort",
        "All profiles share one queue: exactly one plugin sorts it, and every profile must say the same about it.",
        "Write the same queueSort in every profile, or none. To replace the default: disable * there and enable yours.",
    ),
    Code.NO_BIND: Text("nothing binds", "Without a plugin at bind no pod is ever placed.", "Keep DefaultBinder enabled."),
    Code.PLACEMENT_GENERATE: Text("several placement generators", "At most one plugin generates placements.", "Keep one."),
    Code.WEIGHT_OVERFLOW: Text(
        "weights too large",
        "The sum of all weights times 100 must fit into 64 bits.",
        "Take smaller weights; only their ratio matters.",
    ),
    Code.REMOVED_PLUGIN: Text(
        "a removed plugin",
        "The plugin was part of kube-scheduler once. Enabled, it stops kube-scheduler; its args are ignored.",
        "Use what replaced it: the message names it.",
        f"{_SCORE}      - name: NodeResourcesLeastAllocated",
    ),
    Code.ARGS_KIND: Text(
        "args of another kind",
        "The args of a plugin are of the kind <plugin>Args in kubescheduler.config.k8s.io/v1; both fields may be left out.",
        "Remove apiVersion and kind from the args.",
    ),
    Code.NO_FIT_ARGS: Text(
        "no NodeResourcesFit for ignored resources",
        "An extender has resources ignored by the scheduler, which is done through the args of NodeResourcesFit.",
        "Enable NodeResourcesFit, or give it pluginConfig.",
    ),
    Code.FOREIGN_PLUGIN: Text(
        "a plugin that is left out",
        "kube-scheduler itself does not have this plugin, while a scheduler that has it built in does; or it has it, and only a "
        "feature gate gives it something to do. Explanations and simulations leave it out: what it would decide is missing there.",
        "Nothing, if the scheduler has it. --compat refuses it as kube-scheduler does.",
        f"{_SCORE}      - name: NodeResourceTopologyMatch",
    ),
    Code.MISSPELT: Text(
        "a name that means nothing",
        "kube-scheduler ignores names that it does not know in `disabled` and in pluginConfig, so this entry does nothing.",
        "Correct the name. --compat accepts it as kube-scheduler does.",
        "profiles:\n- plugins:\n    score:\n      disabled:\n      - name: ImageLocallity",
    ),
    Code.UNUSED_ARGS: Text(
        "args that nobody reads",
        "The plugin takes no args, is not enabled in this profile, or is not known here.",
        "Remove the args, or enable the plugin.",
    ),
    Code.EXTENDER: Text(
        "an extender",
        "kube-scheduler asks this web service too. Explanations and simulations cannot, so its refusals and scores are missing.",
        "Nothing.",
    ),
    Code.NO_EFFECT: Text("no effect", "What is written changes nothing.", "Remove it."),
    Code.ZERO_WEIGHT: Text(
        "weight 0 means 1",
        "kube-scheduler takes a weight of 0 as not given, and that is 1.",
        "To switch a score off, list the plugin under disabled of score.",
        f"{_SCORE}      - name: ImageLocality\n        weight: 0",
    ),
    Code.POINTLESS_WEIGHT: Text(
        "a weight where nothing is weighed",
        "Weights count at score, placementScore and multiPoint, for plugins that score. Elsewhere they are ignored.",
        "Remove it, or write it at score.",
    ),
    Code.NEGATIVE_WEIGHT: Text(
        "a negative weight",
        "kube-scheduler may take a negative weight: what the plugin likes then counts against a node.",
        "Take a positive weight, or disable the plugin.",
    ),
    Code.CORDONED: Text(
        "cordoned nodes are allowed",
        "Without NodeUnschedulable at filter, pods may be placed on nodes that `kubectl cordon` or a drain has closed.",
        "Keep NodeUnschedulable enabled.",
        "profiles:\n- plugins:\n    filter:\n      disabled:\n      - name: NodeUnschedulable",
    ),
    Code.UNENFORCED: Text(
        "a promise to pods that is not kept",
        "With this plugin off at filter, what pods require of it is ignored without a word.",
        "Disable it at score only, if that is what is meant.",
    ),
    Code.INERT: Text(
        "a strategy that cannot matter",
        "For such pods the score is the same on every node, so it decides nothing.",
        "List cpu and memory too, or score these pods in another way.",
    ),
    Code.WEIGHT_RESET: Text(
        "a default weight is lost",
        "Listing a default plugin without a weight sets its weight to 1; the default weight is not kept.",
        "Write the weight that is meant.",
        f"{_SCORE}      - name: TaintToleration",
    ),
    Code.NOT_SERVED: Text(
        "a newer field",
        "The kube-scheduler that is asked for does not know it, or takes it only with a feature gate.",
        "Remove it or upgrade.",
    ),
    Code.NAME_REMOVED: Text(
        "a schedulerName that is served no more",
        "An edit of the policy of a running scheduler has taken a profile away: pods that ask for its name wait until some"
        " scheduler serves it.",
        "Give a profile that name, unless another scheduler serves it.",
    ),
    Code.RULES: Text("rules", "A rule of a SchedulerPolicy cannot be used.", "See the message."),
    Code.EXPRESSION: Text(
        "an expression that does not fit",
        "The expression of a rule is no CEL, mixes types that do not go together, or gives something else than the rule needs.",
        "See the message; `stowplan eval` tries an expression on a cluster dump.",
    ),
    Code.UNKNOWN_NAME: Text(
        "a name that an expression does not know",
        "Variables, functions and the fields of Kubernetes' objects are checked before anything is evaluated.",
        'Correct the name; labels and annotations are read as pod.labels[?"key"].orValue("").',
    ),
    Code.WHOLE_DIVISION: Text(
        "a division that loses its fraction",
        "Between two ints / cuts to a whole number: 3 / 4 is 0, so a ratio is nearly always 0.",
        "Divide doubles: double(a) / double(b). Resource amounts are doubles already.",
    ),
    Code.TEXT_ORDER: Text(
        "numbers compared as texts",
        'Labels are texts, which are compared letter by letter: "10" is less than "9".',
        "Convert first: int(node.labels.generation) > 9, or semver(...) for versions.",
    ),
    Code.IGNORES_NODE: Text(
        "a score that ignores the node",
        "The score is the same for every node, so it decides nothing.",
        "Read something of the node, or remove the rule.",
    ),
    Code.UNGUARDED: Text(
        "a key or member that may be missing",
        "Reading what is not there is an error: a filter then rejects the node, a score gives 0. Labels and annotations may be"
        " missing, as may many members of objects: a pod without a controller has no owner.",
        'Say what its absence means: node.labels[?"key"].orValue(""); or ask first: has(pod.owner) && pod.owner.kind == "Job".',
    ),
    Code.CONSTANT: Text(
        "a rule that makes no difference here",
        "On the given cluster the rule says the same of every node.",
        "See whether the expression means what it should; `stowplan eval` shows it node by node.",
    ),
    Code.UNKNOWN_LABEL: Text(
        "a label that no node has",
        "The expression reads a label, or asks for the topology domains of one, that 0 nodes of the cluster carry; or it asks for"
        " the domains of a word such as zone, which Kubernetes sets as topology.kubernetes.io/zone.",
        "Correct the key.",
    ),
    Code.FAILING: Text(
        "a rule that fails here",
        "On the given cluster the expression has an error for some nodes, which then count as onError says: a score as 0.",
        "Correct the expression, or say what is meant where something is missing; `stowplan eval` shows it node by node.",
    ),
    Code.SMALL_SHARE: Text(
        "a score that hardly counts",
        "The plugin can add so little to the total that the others nearly always decide.",
        "Give it a larger weight, or disable it.",
    ),
    Code.OPPOSED: Text(
        "scores that pull apart",
        "Two scores of this profile want opposite things, so what is left is the difference of their weights.",
        "Disable the one that is not meant.",
    ),
    Code.DEFAULT_NAME: Text(
        "the default scheduler",
        "The only profile has no schedulerName, so it is the one of all pods that name no scheduler.",
        "Write schedulerName: default-scheduler to say so.",
    ),
    Code.SHARES: Text(
        "what each score counts for",
        "The total of a node is the sum of weight × score (0 to 100), so a score's share of the weights is what it can decide.",
        "Change the weights if this is not what is meant; only their ratio matters.",
    ),
    Code.MISSING_NODE: Text(
        "nodes that are missing", "Pods are bound to nodes that the cluster dump does not hold.", "Dump nodes and pods together."
    ),
    Code.INCOMPLETE: Text(
        "kinds that the dump lacks",
        "Decisions depend on objects of other kinds too: without Services and ReplicaSets nothing is spread by default, without"
        " PersistentVolumeClaims pods with volumes fit nowhere, without PriorityClasses priorities are unknown.",
        "Name the kinds that the message names in `kubectl get`, too.",
    ),
    Code.UNKNOWN_EFFECT: Text(
        "a taint of an unknown effect",
        "Only the effects NoSchedule, PreferNoSchedule and NoExecute mean something to scheduling; the API server accepts no other,"
        " so the dump was changed by hand. The taint counts as none.",
        "Correct the effect in the dump.",
    ),
    Code.EXPECTATION: Text(
        "an expectation that is not met",
        "A policy unit test expects something that the policy does not do. The text of the test is fine.",
        "Correct the policy, or the expectation.",
    ),
}
