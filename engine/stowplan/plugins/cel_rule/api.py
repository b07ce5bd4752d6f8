"""Fields of v1 Pod, Node and Namespace in Kubernetes 1.37, with everything below them, one kind of object a paragraph.

`[x]` is a list, `{x}` a map with string keys. A quantity is a string in the object (`quantity()` reads it), a time is a
timestamp, `any` may be anything.
"""

OBJECTS = """
Pod: apiVersion=string kind=string metadata=ObjectMeta spec=PodSpec status=PodStatus
Node: apiVersion=string kind=string metadata=ObjectMeta spec=NodeSpec status=NodeStatus
Namespace: apiVersion=string kind=string metadata=ObjectMeta spec=NamespaceSpec status=NamespaceStatus
ObjectMeta: name=string generateName=string namespace=string selfLink=string uid=string resourceVersion=string generation=int
  creationTimestamp=time deletionTimestamp=time deletionGracePeriodSeconds=int labels={string} annotations={string}
  ownerReferences=[OwnerReference] finalizers=[string] managedFields=[ManagedFieldsEntry]
PodSpec: volumes=[Volume] initContainers=[Container] containers=[Container] ephemeralContainers=[EphemeralContainer]
  restartPolicy=string terminationGracePeriodSeconds=int activeDeadlineSeconds=int dnsPolicy=string nodeSelector={string}
  serviceAccountName=string serviceAccount=string automountServiceAccountToken=bool nodeName=string hostNetwork=bool
  hostPID=bool hostIPC=bool shareProcessNamespace=bool securityContext=PodSecurityContext
  imagePullSecrets=[LocalObjectReference] hostname=string subdomain=string affinity=Affinity schedulerName=string
  tolerations=[Toleration] hostAliases=[HostAlias] priorityClassName=string priority=int dnsConfig=PodDNSConfig
  readinessGates=[PodReadinessGate] runtimeClassName=string enableServiceLinks=bool preemptionPolicy=string
  overhead={quantity} topologySpreadConstraints=[TopologySpreadConstraint] setHostnameAsFQDN=bool os=PodOS hostUsers=bool
  schedulingGates=[PodSchedulingGate] resourceClaims=[PodResourceClaim] resources=ResourceRequirements hostnameOverride=string
  schedulingGroup=PodSchedulingGroup evictionResponders=[EvictionResponder]
PodStatus: observedGeneration=int phase=string conditions=[PodCondition] message=string reason=string nominatedNodeName=string
  hostIP=string hostIPs=[HostIP] podIP=string podIPs=[PodIP] startTime=time initContainerStatuses=[ContainerStatus]
  containerStatuses=[ContainerStatus] qosClass=string ephemeralContainerStatuses=[ContainerStatus] resize=string
  resourceClaimStatuses=[PodResourceClaimStatus] extendedResourceClaimStatus=PodExtendedResourceClaimStatus
  allocatedResources={quantity} resources=ResourceRequirements
  nodeAllocatableResourceClaimStatuses=[NodeAllocatableResourceClaimStatus] volumeHealth=[PodVolumeHealth]
NodeSpec: podCIDR=string podCIDRs=[string] providerID=string unschedulable=bool taints=[Taint] configSource=NodeConfigSource
  externalID=string podPreemptionPolicy=NodePodPreemptionPolicy
NodeStatus: capacity={quantity} allocatable={quantity} phase=string conditions=[NodeCondition] addresses=[NodeAddress]
  daemonEndpoints=NodeDaemonEndpoints nodeInfo=NodeSystemInfo images=[ContainerImage] volumesInUse=[string]
  volumesAttached=[AttachedVolume] config=NodeConfigStatus runtimeHandlers=[NodeRuntimeHandler] features=NodeFeatures
  declaredFeatures=[string]
NamespaceSpec: finalizers=[string]
NamespaceStatus: phase=string conditions=[NamespaceCondition]
OwnerReference: apiVersion=string kind=string name=string uid=string controller=bool blockOwnerDeletion=bool
ManagedFieldsEntry: manager=string operation=string apiVersion=string time=time fieldsType=string fieldsV1=any
  subresource=string
Volume: name=string hostPath=HostPathVolumeSource emptyDir=EmptyDirVolumeSource
  gcePersistentDisk=GCEPersistentDiskVolumeSource awsElasticBlockStore=AWSElasticBlockStoreVolumeSource
  gitRepo=GitRepoVolumeSource secret=SecretVolumeSource nfs=NFSVolumeSource iscsi=ISCSIVolumeSource
  glusterfs=GlusterfsVolumeSource persistentVolumeClaim=PersistentVolumeClaimVolumeSource rbd=RBDVolumeSource
  flexVolume=FlexVolumeSource cinder=CinderVolumeSource cephfs=CephFSVolumeSource flocker=FlockerVolumeSource
  downwardAPI=DownwardAPIVolumeSource fc=FCVolumeSource azureFile=AzureFileVolumeSource configMap=ConfigMapVolumeSource
  vsphereVolume=VsphereVirtualDiskVolumeSource quobyte=QuobyteVolumeSource azureDisk=AzureDiskVolumeSource
  photonPersistentDisk=PhotonPersistentDiskVolumeSource projected=ProjectedVolumeSource portworxVolume=PortworxVolumeSource
  scaleIO=ScaleIOVolumeSource storageos=StorageOSVolumeSource csi=CSIVolumeSource ephemeral=EphemeralVolumeSource
  image=ImageVolumeSource
Container: name=string image=string command=[string] args=[string] workingDir=string ports=[ContainerPort]
  envFrom=[EnvFromSource] env=[EnvVar] resources=ResourceRequirements resizePolicy=[ContainerResizePolicy]
  restartPolicy=string restartPolicyRules=[ContainerRestartRule] volumeMounts=[VolumeMount] volumeDevices=[VolumeDevice]
  livenessProbe=Probe readinessProbe=Probe startupProbe=Probe lifecycle=Lifecycle terminationMessagePath=string
  terminationMessagePolicy=string imagePullPolicy=string securityContext=SecurityContext stdin=bool stdinOnce=bool tty=bool
EphemeralContainer: name=string image=string command=[string] args=[string] workingDir=string ports=[ContainerPort]
  envFrom=[EnvFromSource] env=[EnvVar] resources=ResourceRequirements resizePolicy=[ContainerResizePolicy]
  restartPolicy=string restartPolicyRules=[ContainerRestartRule] volumeMounts=[VolumeMount] volumeDevices=[VolumeDevice]
  livenessProbe=Probe readinessProbe=Probe startupProbe=Probe lifecycle=Lifecycle terminationMessagePath=string
  terminationMessagePolicy=string imagePullPolicy=string securityContext=SecurityContext stdin=bool stdinOnce=bool tty=bool
  targetContainerName=string
PodSecurityContext: seLinuxOptions=SELinuxOptions windowsOptions=WindowsSecurityContextOptions runAsUser=int runAsGroup=int
  runAsNonRoot=bool supplementalGroups=[int] supplementalGroupsPolicy=string fsGroup=int sysctls=[Sysctl]
  fsGroupChangePolicy=string seccompProfile=SeccompProfile appArmorProfile=AppArmorProfile seLinuxChangePolicy=string
LocalObjectReference: name=string
Affinity: nodeAffinity=NodeAffinity podAffinity=PodAffinity podAntiAffinity=PodAntiAffinity
Toleration: key=string operator=string value=string effect=string tolerationSeconds=int
HostAlias: ip=string hostnames=[string]
PodDNSConfig: nameservers=[string] searches=[string] options=[PodDNSConfigOption]
PodReadinessGate: conditionType=string
TopologySpreadConstraint: maxSkew=int topologyKey=string whenUnsatisfiable=string labelSelector=LabelSelector minDomains=int
  nodeAffinityPolicy=string nodeTaintsPolicy=string matchLabelKeys=[string]
PodOS: name=string
PodSchedulingGate: name=string
PodResourceClaim: name=string resourceClaimName=string resourceClaimTemplateName=string
ResourceRequirements: limits={quantity} requests={quantity} claims=[ResourceClaim]
PodSchedulingGroup: podGroupName=string
EvictionResponder: name=string priority=int
PodCondition: type=string observedGeneration=int status=string lastProbeTime=time lastTransitionTime=time reason=string
  message=string
HostIP: ip=string
PodIP: ip=string
ContainerStatus: name=string state=ContainerState lastState=ContainerState ready=bool restartCount=int image=string
  imageID=string containerID=string started=bool allocatedResources={quantity} resources=ResourceRequirements
  volumeMounts=[VolumeMountStatus] user=ContainerUser allocatedResourcesStatus=[ResourceStatus] stopSignal=string
PodResourceClaimStatus: name=string resourceClaimName=string
PodExtendedResourceClaimStatus: requestMappings=[ContainerExtendedResourceRequest] resourceClaimName=string
NodeAllocatableResourceClaimStatus: resourceClaimName=string containers=[string] mapping=[NodeAllocatableMappedResources]
  overhead=[NodeAllocatableOverheadResources]
PodVolumeHealth: name=string healthConditions=[VolumeHealthCondition] lastTransitionTime=time
Taint: key=string value=string effect=string timeAdded=time
NodeConfigSource: configMap=ConfigMapNodeConfigSource
NodePodPreemptionPolicy: disableResizePreemption=[string]
NodeCondition: type=string status=string lastHeartbeatTime=time lastTransitionTime=time reason=string message=string
NodeAddress: type=string address=string
NodeDaemonEndpoints: kubeletEndpoint=DaemonEndpoint
NodeSystemInfo: machineID=string systemUUID=string bootID=string kernelVersion=string osImage=string
  containerRuntimeVersion=string kubeletVersion=string kubeProxyVersion=string operatingSystem=string architecture=string
  swap=NodeSwapStatus runningInUserNamespace=bool
ContainerImage: names=[string] sizeBytes=int
AttachedVolume: name=string devicePath=string
NodeConfigStatus: assigned=NodeConfigSource active=NodeConfigSource lastKnownGood=NodeConfigSource error=string
NodeRuntimeHandler: name=string features=NodeRuntimeHandlerFeatures
NodeFeatures: supplementalGroupsPolicy=bool
NamespaceCondition: type=string status=string lastTransitionTime=time reason=string message=string
HostPathVolumeSource: path=string type=string
EmptyDirVolumeSource: medium=string sizeLimit=quantity mode=int
GCEPersistentDiskVolumeSource: pdName=string fsType=string partition=int readOnly=bool
AWSElasticBlockStoreVolumeSource: volumeID=string fsType=string partition=int readOnly=bool
GitRepoVolumeSource: repository=string revision=string directory=string
SecretVolumeSource: secretName=string items=[KeyToPath] defaultMode=int optional=bool defaultUser=int
NFSVolumeSource: server=string path=string readOnly=bool
ISCSIVolumeSource: targetPortal=string iqn=string lun=int iscsiInterface=string fsType=string readOnly=bool portals=[string]
  chapAuthDiscovery=bool chapAuthSession=bool secretRef=LocalObjectReference initiatorName=string
GlusterfsVolumeSource: endpoints=string path=string readOnly=bool
PersistentVolumeClaimVolumeSource: claimName=string readOnly=bool
RBDVolumeSource: monitors=[string] image=string fsType=string pool=string user=string keyring=string
  secretRef=LocalObjectReference readOnly=bool
FlexVolumeSource: driver=string fsType=string secretRef=LocalObjectReference readOnly=bool options={string}
CinderVolumeSource: volumeID=string fsType=string readOnly=bool secretRef=LocalObjectReference
CephFSVolumeSource: monitors=[string] path=string user=string secretFile=string secretRef=LocalObjectReference readOnly=bool
FlockerVolumeSource: datasetName=string datasetUUID=string
DownwardAPIVolumeSource: items=[DownwardAPIVolumeFile] defaultMode=int defaultUser=int
FCVolumeSource: targetWWNs=[string] lun=int fsType=string readOnly=bool wwids=[string]
AzureFileVolumeSource: secretName=string shareName=string readOnly=bool
ConfigMapVolumeSource: name=string items=[KeyToPath] defaultMode=int optional=bool defaultUser=int
VsphereVirtualDiskVolumeSource: volumePath=string fsType=string storagePolicyName=string storagePolicyID=string
QuobyteVolumeSource: registry=string volume=string readOnly=bool user=string group=string tenant=string
AzureDiskVolumeSource: diskName=string diskURI=string cachingMode=string fsType=string readOnly=bool kind=string
PhotonPersistentDiskVolumeSource: pdID=string fsType=string
ProjectedVolumeSource: sources=[VolumeProjection] defaultMode=int defaultUser=int
PortworxVolumeSource: volumeID=string fsType=string readOnly=bool
ScaleIOVolumeSource: gateway=string system=string secretRef=LocalObjectReference sslEnabled=bool protectionDomain=string
  storagePool=string storageMode=string volumeName=string fsType=string readOnly=bool
StorageOSVolumeSource: volumeName=string volumeNamespace=string fsType=string readOnly=bool secretRef=LocalObjectReference
CSIVolumeSource: driver=string readOnly=bool fsType=string volumeAttributes={string} nodePublishSecretRef=LocalObjectReference
EphemeralVolumeSource: volumeClaimTemplate=PersistentVolumeClaimTemplate
ImageVolumeSource: reference=string pullPolicy=string
ContainerPort: name=string hostPort=int containerPort=int protocol=string hostIP=string
EnvFromSource: prefix=string configMapRef=ConfigMapEnvSource secretRef=SecretEnvSource
EnvVar: name=string value=string valueFrom=EnvVarSource
ContainerResizePolicy: resourceName=string restartPolicy=string
ContainerRestartRule: action=string exitCodes=ContainerRestartRuleOnExitCodes
VolumeMount: name=string readOnly=bool recursiveReadOnly=string mountPath=string subPath=string mountPropagation=string
  subPathExpr=string bindMountOptions=[string]
VolumeDevice: name=string devicePath=string
Probe: exec=ExecAction httpGet=HTTPGetAction tcpSocket=TCPSocketAction grpc=GRPCAction initialDelaySeconds=int
  timeoutSeconds=int periodSeconds=int successThreshold=int failureThreshold=int terminationGracePeriodSeconds=int
Lifecycle: postStart=LifecycleHandler preStop=LifecycleHandler stopSignal=string
SecurityContext: capabilities=Capabilities privileged=bool seLinuxOptions=SELinuxOptions
  windowsOptions=WindowsSecurityContextOptions runAsUser=int runAsGroup=int runAsNonRoot=bool readOnlyRootFilesystem=bool
  allowPrivilegeEscalation=bool procMount=string seccompProfile=SeccompProfile appArmorProfile=AppArmorProfile
SELinuxOptions: user=string role=string type=string level=string
WindowsSecurityContextOptions: gmsaCredentialSpecName=string gmsaCredentialSpec=string runAsUserName=string hostProcess=bool
Sysctl: name=string value=string
SeccompProfile: type=string localhostProfile=string
AppArmorProfile: type=string localhostProfile=string
NodeAffinity: requiredDuringSchedulingIgnoredDuringExecution=NodeSelector
  preferredDuringSchedulingIgnoredDuringExecution=[PreferredSchedulingTerm]
PodAffinity: requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
PodAntiAffinity: requiredDuringSchedulingIgnoredDuringExecution=[PodAffinityTerm]
  preferredDuringSchedulingIgnoredDuringExecution=[WeightedPodAffinityTerm]
PodDNSConfigOption: name=string value=string
LabelSelector: matchLabels={string} matchExpressions=[LabelSelectorRequirement]
ResourceClaim: name=string request=string
ContainerState: waiting=ContainerStateWaiting running=ContainerStateRunning terminated=ContainerStateTerminated
VolumeMountStatus: name=string mountPath=string readOnly=bool recursiveReadOnly=string volumeStatus=VolumeStatus
ContainerUser: linux=LinuxContainerUser
ResourceStatus: name=string resources=[ResourceHealth]
ContainerExtendedResourceRequest: containerName=string resourceName=string requestName=string
NodeAllocatableMappedResources: name=string quantity=quantity
NodeAllocatableOverheadResources: name=string perPod=quantity perContainer=quantity
VolumeHealthCondition: status=string reason=string message=string
ConfigMapNodeConfigSource: namespace=string name=string uid=string resourceVersion=string kubeletConfigKey=string
DaemonEndpoint: Port=int
NodeSwapStatus: capacity=int
NodeRuntimeHandlerFeatures: recursiveReadOnlyMounts=bool userNamespaces=bool
KeyToPath: key=string path=string mode=int user=int
DownwardAPIVolumeFile: path=string fieldRef=ObjectFieldSelector resourceFieldRef=ResourceFieldSelector mode=int user=int
VolumeProjection: secret=SecretProjection downwardAPI=DownwardAPIProjection configMap=ConfigMapProjection
  serviceAccountToken=ServiceAccountTokenProjection clusterTrustBundle=ClusterTrustBundleProjection
  podCertificate=PodCertificateProjection
PersistentVolumeClaimTemplate: metadata=ObjectMeta spec=PersistentVolumeClaimSpec
ConfigMapEnvSource: name=string optional=bool
SecretEnvSource: name=string optional=bool
EnvVarSource: fieldRef=ObjectFieldSelector resourceFieldRef=ResourceFieldSelector configMapKeyRef=ConfigMapKeySelector
  secretKeyRef=SecretKeySelector fileKeyRef=FileKeySelector
ContainerRestartRuleOnExitCodes: operator=string values=[int]
ExecAction: command=[string]
HTTPGetAction: path=string port=any host=string scheme=string httpHeaders=[HTTPHeader] protocol=string
TCPSocketAction: port=any host=string
GRPCAction: port=int service=string mode=string
LifecycleHandler: exec=ExecAction httpGet=HTTPGetAction tcpSocket=TCPSocketAction sleep=SleepAction
Capabilities: add=[string] drop=[string]
NodeSelector: nodeSelectorTerms=[NodeSelectorTerm]
PreferredSchedulingTerm: weight=int preference=NodeSelectorTerm
PodAffinityTerm: labelSelector=LabelSelector namespaces=[string] topologyKey=string namespaceSelector=LabelSelector
  matchLabelKeys=[string] mismatchLabelKeys=[string]
WeightedPodAffinityTerm: weight=int podAffinityTerm=PodAffinityTerm
LabelSelectorRequirement: key=string operator=string values=[string]
ContainerStateWaiting: reason=string message=string
ContainerStateRunning: startedAt=time
ContainerStateTerminated: exitCode=int signal=int reason=string message=string startedAt=time finishedAt=time
  containerID=string
VolumeStatus: image=ImageVolumeStatus
LinuxContainerUser: uid=int gid=int supplementalGroups=[int]
ResourceHealth: resourceID=string health=string message=string
ObjectFieldSelector: apiVersion=string fieldPath=string
ResourceFieldSelector: containerName=string resource=string divisor=quantity
SecretProjection: name=string items=[KeyToPath] optional=bool
DownwardAPIProjection: items=[DownwardAPIVolumeFile]
ConfigMapProjection: name=string items=[KeyToPath] optional=bool
ServiceAccountTokenProjection: audience=string expirationSeconds=int path=string user=int
ClusterTrustBundleProjection: name=string signerName=string labelSelector=LabelSelector optional=bool path=string user=int
PodCertificateProjection: signerName=string keyType=string maxExpirationSeconds=int credentialBundlePath=string keyPath=string
  certificateChainPath=string userAnnotations={string} user=int
PersistentVolumeClaimSpec: accessModes=[string] selector=LabelSelector resources=VolumeResourceRequirements volumeName=string
  storageClassName=string volumeMode=string dataSource=TypedLocalObjectReference dataSourceRef=TypedObjectReference
  volumeAttributesClassName=string
ConfigMapKeySelector: name=string key=string optional=bool
SecretKeySelector: name=string key=string optional=bool
FileKeySelector: volumeName=string path=string key=string optional=bool
HTTPHeader: name=string value=string
SleepAction: seconds=int
NodeSelectorTerm: matchExpressions=[NodeSelectorRequirement] matchFields=[NodeSelectorRequirement]
ImageVolumeStatus: imageRef=string
VolumeResourceRequirements: limits={quantity} requests={quantity}
TypedLocalObjectReference: apiGroup=string kind=string name=string
TypedObjectReference: apiGroup=string kind=string name=string namespace=string
NodeSelectorRequirement: key=string operator=string values=[string]
"""
