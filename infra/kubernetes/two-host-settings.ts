/** Settings that only two hosts have, by path, each with the reason. */
export const NOT_ON_KUBERNETES: Readonly<Record<string, string>> = {
  hosts:
    "is for two hosts: on Kubernetes, cluster.context names the cluster, whose nodes run the pods",
  placement: "is for two hosts: Kubernetes chooses the node of each pod",
  prefix:
    "is for two hosts: on Kubernetes, cluster.namespace separates stacks in one cluster",
  ports:
    "is for two hosts: on Kubernetes, the ports are those of the Ingress or the Gateway",
  "edge.email":
    "is for two hosts: on Kubernetes, cert-manager requests certificates, and edge.issuer names its issuer",
  "images.caddy":
    "is for two hosts: on Kubernetes, the Ingress or the Gateway takes the place of the edges",
  "images.haproxy":
    "is for two hosts: on Kubernetes, the supervisor reads the pods through a service account",
  "images.nodeBase":
    "is for two hosts, where images are built: on Kubernetes, images.gateway and images.supervisor name finished ones (npm run images -- --base IMAGE builds on another base)",
  gatewayRole:
    "is for two hosts: on Kubernetes, the role is part of databaseUrl, or gateway_a in the bundled Postgres",
  importRoles:
    "is for two hosts: on Kubernetes, a Job of the chart creates the roles of the bundled Postgres",
  postgresVersion:
    "is for two hosts: on Kubernetes, the version is that of images.postgres or of the external Postgres",
  postgresAt:
    "is for two hosts: on Kubernetes, nothing connects to Postgres from this machine",
  notesData:
    "is for two hosts: on Kubernetes, storage.notes is the volume's size",
  notesOpenFiles: "is for two hosts: on Kubernetes, the node sets this limit",
  backupDirectory:
    "is for two hosts: on Kubernetes, storage.supervisor is the size of the volume with the backups",
  caKey:
    "is for two hosts: on Kubernetes, no certificates are issued between hosts",
  redisPasswordPrevious:
    "is for two hosts: on Kubernetes, Redis has one password (docs/growing.md)",
};
