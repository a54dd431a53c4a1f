// Package topology makes several Redis servers stand in for each other, and gives
// clients the way to those that serve.
//
// A [Shape] is what differs between the topologies: a primary with replicas ([Pair]),
// with sentinels besides ([Watched]), and a cluster ([Cluster]). [LaunchAll] builds one of
// servers of our own, and [FindPair], [FindWatched] and [FindCluster] find one that runs
// already.
package topology
