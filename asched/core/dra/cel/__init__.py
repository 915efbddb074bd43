"""The Common Expression Language, as far as device selectors use it.

`evaluate.compile_expression` turns a selector into a program once; a program evaluates one device
at a time. Unsupported features (time, network addresses, messages, authorization) are rejected by
the compiler, with the expression and the position. Libraries were considered and rejected: the
Python ones bring a parser generator, a regular expression engine and a date library into `core`.

Source  github.com/google/cel-spec; kubernetes/kubernetes v1.36 dynamic-resource-allocation/cel
"""
