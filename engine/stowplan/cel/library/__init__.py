"""The functions of CEL and of Kubernetes' libraries, one file a library; each offers tuples of overloads."""
