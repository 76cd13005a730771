# SPDX-License-Identifier: Apache-2.0
"""The files that the oracle looks at: what is installed, and Go programs made for it."""
import glob
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
LIB = '/usr/lib/x86_64-linux-gnu/'
INSTALLED = [
    LIB + 'libc.so.6', '/lib64/ld-linux-x86-64.so.2', LIB + 'libstdc++.so.6', LIB + 'libm.so.6',
    LIB + 'libcrypto.so.3', LIB + 'libssl.so.3', LIB + 'libz.so.1', LIB + 'libzstd.so.1',
    LIB + 'libgcc_s.so.1', LIB + 'libsqlite3.so.0', LIB + 'libcurl.so.4', LIB + 'libelf.so.1',
    LIB + 'libLLVM-14.so.1', LIB + 'libclang-cpp.so.14', LIB + 'libgmp.so.10',
    LIB + 'libperl.so.5.36', LIB + 'libpython3.11.so.1.0', '/bin/bash', '/usr/bin/python3',
    '/usr/bin/perl', '/usr/bin/ruby', LIB + 'libruby-3.1.so.3.1', '/usr/bin/git', '/usr/bin/gdb',
    '/usr/bin/perf', '/usr/bin/openssl', '/usr/bin/curl', '/usr/bin/make', '/usr/bin/node',
    '/usr/bin/qemu-system-x86_64', '/usr/bin/redis-server', '/usr/sbin/runc', '/usr/bin/as',
    '/usr/bin/ld.bfd', '/usr/lib/gcc/x86_64-linux-gnu/12/cc1',
    '/usr/lib/gcc/x86_64-linux-gnu/12/cc1plus', '/usr/lib/postgresql/15/bin/postgres',
    '/usr/lib/jvm/java-17-openjdk-amd64/lib/server/libjvm.so',
    '/usr/lib/jvm/java-17-openjdk-amd64/lib/libjava.so', '/usr/local/go/bin/go',
    '/usr/lib/go-1.19/bin/go', '/usr/lib/go-1.19/bin/gofmt']
PATTERNS = ['~/.rustup/toolchains/*/bin/cargo', '~/.rustup/toolchains/*/lib/librustc_driver-*.so']


def installed():
    """Real paths, each once."""
    paths = INSTALLED + [p for pattern in PATTERNS for p in glob.glob(os.path.expanduser(pattern))]
    found = []
    for path in map(os.path.realpath, paths):
        if os.path.exists(path) and path not in found:
            found.append(path)
    return found


def compilers():
    """Go commands by a short name; SONDE_GO_TOOLCHAINS="go1.N ..." adds some by GOTOOLCHAIN."""
    found = {}
    for path in [shutil.which('go')] + sorted(glob.glob('/usr/lib/go-*/bin/go')):
        if not path:
            continue
        version = subprocess.run([path, 'env', 'GOVERSION'], stdout=subprocess.PIPE, check=False,
                                 universal_newlines=True).stdout.strip()
        if version:
            found.setdefault(version, [path])
    for name in os.environ.get('SONDE_GO_TOOLCHAINS', '').split():
        found[name] = ['env', 'GOTOOLCHAIN=' + name, 'go']
    return found


# Suffix, folder of the source, what is different when stripped and when not.
VARIANTS = [('', 'plain', []), ('-pie', 'plain', ['-buildmode=pie']), ('-cgo', 'cgo', []),
            ('-cgo-pie', 'cgo', ['-buildmode=pie', '-ldflags=-linkmode=external'])]


def strip_flags(flags):
    joined = [f for f in flags if not f.startswith('-ldflags=')]
    old = [f[len('-ldflags='):] for f in flags if f.startswith('-ldflags=')]
    return joined + ['-ldflags=' + ' '.join(old + ['-s', '-w'])]


def go_programs(folder, is_short):
    """
    Builds each variant, as it is and stripped; yields (path, unstripped twin, go command). Short:
    the first and the last variant, by the machine's own go.
    """
    folder = os.path.abspath(folder)
    env = dict(os.environ, GOFLAGS='-buildvcs=false', GOCACHE=os.path.join(folder, 'cache'))
    for version, go in list(compilers().items())[:1 if is_short else None]:
        for suffix, source, flags in VARIANTS[::3] if is_short else VARIANTS:
            env['CGO_ENABLED'] = '1' if source == 'cgo' else '0'
            twin = os.path.join(folder, version + suffix)
            for path, how in ((twin, flags), (twin + '-s', strip_flags(flags))):
                done = subprocess.run([*go, 'build', *how, '-o', path, './' + source], env=env,
                                      cwd=os.path.join(HERE, 'gosample'), check=False,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                      universal_newlines=True)
                if done.returncode:
                    print('# %s: not built: %s' % (path, done.stderr.strip()[-200:]))
                    break
                yield path, twin, go
