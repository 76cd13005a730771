# As Go's heap profiles: no labels, no mappings, values in bytes, a default type, source lines.
type alloc_objects count
type alloc_space bytes
type inuse_objects count
type inuse_space bytes
default alloc_space
period space bytes 524288
source main.go
sample 10,10485760,1,1048576 | main.grow:12 main.main:30
sample 300,3072,0,0 | main.small:7 main.main:31
sample 1,512,1,512 | main.grow:14 main.main:30
