#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Puts every option of `sonde agent` into the manifest, the chart's values and its schema.

usage: sonde agent --example-config | tools/deploy_config.py [-n]

The option table stays the one source: what stands between "begin options" and "end options", and
the schema's properties of config, is written anew. -n only tells whether something would change
(exit status 1).
"""
import json
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MANIFEST = 'deploy/kubernetes/daemonset.yaml'
VALUES = 'deploy/helm/sonde/values.yaml'
SCHEMA = 'deploy/helm/sonde/values.schema.json'
# In a pod the kubelet and Prometheus come from outside.
OTHER_DEFAULTS = {'listen': '":9464"'}


def parse(text):
    """Blocks of an example: [(comment lines, name, value, commented out)]."""
    options = []
    for block in re.split(r'\n\s*\n', text.strip()):
        *comments, last = block.split('\n')
        m = re.match(r'^(#?)([a-z0-9-]+): (.*)$', last)
        if not m or any(not c.startswith('# ') for c in comments):
            sys.exit(f'deploy_config: not an option: {block!r}')
        options.append((comments, m[2], OTHER_DEFAULTS.get(m[2], m[3]), bool(m[1])))
    return options


def as_yaml(options, indent):
    blocks = []
    for comments, name, value, off in options:
        lines = comments + [f'{"#" if off else ""}{name}: {value}']
        blocks.append('\n'.join(indent + line for line in lines))
    return '\n\n'.join(blocks) + '\n'


def as_schema(option):
    comments, _name, value, off = option
    schema = {'description': comments[0][2:]}
    bounds = next((m for c in comments if (m := re.match(r'^# from (\S+) to (\S+)$', c))), None)
    if off or value.startswith('"'):
        return {**schema, 'type': 'string'}
    if value in ('yes', 'no'):
        return {**schema, 'type': 'boolean'}
    if re.fullmatch(r'[\d.]+', value):
        schema['type'] = 'number'
        if bounds:
            schema.update(minimum=float(bounds[1]), maximum=float(bounds[2]))
        return schema
    return {**schema, 'type': ['string', 'number'], 'pattern': r'^[0-9.]+(ns|us|ms|s|m|h|d)?$'}


def between(text, body):
    made, count = re.subn(r'(?m)(^ *# begin options\n)[\s\S]*?(^ *# end options$)',
                          lambda m: m[1] + body + m[2], text)
    if count != 1:
        sys.exit('deploy_config: no place marked "begin options"')
    return made


def with_schema(text, options):
    schema = json.loads(text)
    config = schema['properties']['config']
    config['properties'] = {o[1]: as_schema(o) for o in options}
    return json.dumps(schema, indent=2) + '\n'


def main():
    options = parse(sys.stdin.read())
    changes = {
        MANIFEST: lambda t: between(t, as_yaml(options, '    ')),
        VALUES: lambda t: between(t, as_yaml(options, '  ')),
        SCHEMA: lambda t: with_schema(t, options),
    }
    stale = []
    for path, change in changes.items():
        full = os.path.join(ROOT, path)
        with open(full, encoding='utf-8') as f:
            old = f.read()
        new = re.sub(r'(?m)^ +$', '', change(old))
        if new == old:
            continue
        stale.append(path)
        if '-n' not in sys.argv[1:]:
            with open(full, 'w', encoding='utf-8') as f:
                f.write(new)
    print(*stale, sep='\n', end='\n' if stale else '')
    sys.exit(bool(stale) and '-n' in sys.argv[1:])


if __name__ == '__main__':
    main()
