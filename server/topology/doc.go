// Package topology combines several Redis servers that can replace each other, and leads clients to those that serve.
//
// A [Shape] is what differs between the topologies: a master with replicas ([ReplicaGroup]),
// with sentinels besides ([SentinelGroup]), and a cluster ([Cluster]). [LaunchAll] builds one from our own servers, and
// [FindPair], [FindWatched] and [FindCluster] find a running one.
package topology
