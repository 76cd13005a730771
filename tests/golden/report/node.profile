# A small profile of a node: kernel, a module, names and bare addresses, a recursion, an inlined
# function, markers, an empty stack. Format: tests/unit/profile_text.h.
type samples count
type cpu nanoseconds
period cpu nanoseconds 10000000
time 1700000000000000000 60000000000
comment host: node-1, kernel: 6.1.0-42-amd64
comment samples: expected 5940, received 5938, lost 2
mapping app /usr/bin/app
mapping c /usr/lib/x86_64-linux-gnu/libc.so.6
mapping k [kernel.kallsyms]_stext
mapping ext4 [ext4]
mapping jit [jit]
sample 60 comm=app thread=worker-1 pid=#100 tid=#101 cgroup=/a.slice | hot@app mid@app main@app __libc_start@c _start@app
sample 30 comm=app thread=worker-1 pid=#100 tid=#101 cgroup=/a.slice systemd_unit=a.service | warm@app mid@app main@app __libc_start@c _start@app
sample 10 comm=app thread=worker-2 pid=#100 tid=#102 cgroup=/a.slice | copy_page@k ext4_read@ext4 do_syscall_64@k 0x7f21@c main@app __libc_start@c _start@app
sample 20 comm=app thread=worker-2 pid=#100 tid=#102 cgroup=/a.slice | fib@app fib@app fib@app main@app __libc_start@c _start@app
sample 5 comm=node thread=node pid=#7 tid=#7 cgroup=/b.slice | 0x3ff001000@jit Interpret@jit 0x99
sample 4 comm=node thread=node pid=#7 tid=#7 cgroup=/b.slice container_id=0123456789ab pod_uid=5c1a6e7b-0d2f | inlined+outer@app:10 main@app [truncated]
sample 2 comm=node thread=node pid=#7 tid=#7 cgroup=/b.slice | std::map<int,_char>::find@app main@app
sample 1 comm=sh\x1b[31m pid=#9 tid=#9 cgroup=/b.slice | execve@k [no_user_stack]
sample 1 comm=sh\x1b[31m pid=#10 tid=#10 cgroup=/b.slice |
