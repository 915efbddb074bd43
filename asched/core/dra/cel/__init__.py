"""The Common Expression Language, as far as device selectors use it.

`program.compile_expression` turns a selector into a program once; a program asks one device at a
time. What lies beyond (time, network addresses, messages, authorization) is refused when it is
compiled, with the expression and the place in it. A library was weighed and not taken: the Python
ones bring a parser generator, a regular expression engine and a date library into the deciding
half.

Source  github.com/google/cel-spec; kubernetes/kubernetes v1.36 dynamic-resource-allocation/cel
"""
