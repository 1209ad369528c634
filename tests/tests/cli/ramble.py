"""Reads the output of ombx by the patterns of its application, line by line as Ramble does. Prints figures by context as JSON."""
import json
import re
import runpy
import sys
import types

contexts, figures, success = {}, [], []


def ignored(*_, **__):
    pass


def figure_of_merit_context(name, regex, output_format):
    contexts[name] = (re.compile(regex), output_format)


def figure_of_merit(name, fom_regex, group_name, units, contexts=()):
    figures.append((name, re.compile(fom_regex), group_name, list(contexts)))


def success_criteria(name, mode, match, file):
    success.append(re.compile(match))


kit = types.ModuleType('ramble.appkit')
kit.ExecutableApplication = object
kit.figure_of_merit_context = figure_of_merit_context
kit.figure_of_merit = figure_of_merit
kit.success_criteria = success_criteria
for word in ['executable', 'software_spec', 'tags', 'workload', 'workload_variable']:
    setattr(kit, word, ignored)
sys.modules['ramble'] = types.ModuleType('ramble')
sys.modules['ramble.appkit'] = kit
runpy.run_path(sys.argv[1])

found, complete = {}, False
for line in open(sys.argv[2], encoding='utf-8'):
    complete = complete or any(pattern.search(line) for pattern in success)
    active = {}
    for name, (pattern, form) in contexts.items():
        match = pattern.search(line)
        if match:
            active[name] = form.format(**match.groupdict())
    for name, pattern, group, wanted in figures:
        match = pattern.search(line)
        for context in wanted:
            if match and context in active:
                found.setdefault(active[context], {})[name] = float(match.group(group))
print(json.dumps({'figures': found, 'complete': complete}))
