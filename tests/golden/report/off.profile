# Time off the CPU, as sonde record --off-cpu has it. Format: tests/unit/profile_text.h.
type waits count
type longest nanoseconds
type off_cpu nanoseconds
default off_cpu
time 1700000000000000000 10000000000
mapping app /usr/bin/app
mapping c /usr/lib/x86_64-linux-gnu/libc.so.6
mapping k [kernel.kallsyms]_stext
source /src/app.c
sample 400,9000000,2000000000 comm=app pid=#100 state=blocked reason=lock | futex_wait@k __GI___lll_lock_wait@c pthread_mutex_lock@c update_row:42@app main:7@app
sample 50,1000000,10000000 comm=app pid=#100 state=blocked reason=lock | futex_wait@k __GI___lll_lock_wait@c pthread_mutex_lock@c read_row:50@app main:7@app
sample 3,2000000000,6000000000 comm=app pid=#100 state=blocked reason=lock idle=yes | futex_wait@k pthread_cond_wait@c wait_for_work:60@app main:7@app
sample 9,3000000000,9000000000 comm=app pid=#100 state=blocked reason=poll idle=yes | ep_poll@k epoll_wait@c loop:80@app
sample 70,500000,20000000 comm=app pid=#100 state=runnable reason=woken | futex_wait@k pthread_mutex_lock@c update_row:42@app main:7@app
sample 2,5000000,8000000 comm=other pid=#200 state=blocked reason=lock | [no_stack]
