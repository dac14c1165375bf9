package gvisor

// CgroupsIn makes the cgroups of one sandbox as a machine with the files below
// proc would, and returns their folders and what is missing.
func CgroupsIn(proc, name, id string, l Limits) (dirs, missing []string, err error) {
	c := findCgroupsIn(proc, name)
	return c.dirs(id), c.missing, c.create(id, l)
}

// PruneOthers removes what others left beside a runtime whose cgroups are below these.
func PruneOthers(prefix, parent string) {
	(&cgroups{parents: map[string]string{"memory": parent}}).pruneOthers(prefix)
}

// Program is what the runtime starts as runsc.
func (r *Runtime) Program() string { return r.runsc.program }

// CgroupName is the name of the cgroups of a data folder.
func CgroupName(dir string) string { return cgroupName(Config{Dir: dir}.withDefaults()) }
