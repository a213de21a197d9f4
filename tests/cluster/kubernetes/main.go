// One program with Kubernetes' components and etcd in it, each called by its own name (a symbolic link):
// linked once, it costs a quarter of the disk and of the build time that seven programs do.
package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	// The images and the network namespaces of the tests have no time zones of their own.
	_ "time/tzdata"

	// Each component's own `main` imports these for their side effects: log formats and the version in metrics.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	"k8s.io/component-base/logs"
	kubectl "k8s.io/kubectl/pkg/cmd"
	"k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	proxy "k8s.io/kubernetes/cmd/kube-proxy/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	switch name := filepath.Base(os.Args[0]); name {
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-controller-manager":
		os.Exit(cli.Run(controllers.NewControllerManagerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(scheduler.NewSchedulerCommand()))
	case "kubelet":
		os.Exit(cli.Run(kubelet.NewKubeletCommand(context.Background())))
	case "kube-proxy":
		os.Exit(cli.Run(proxy.NewProxyCommand()))
	case "kubectl":
		runKubectl()
	case "etcd":
		etcdmain.Main(os.Args)
	default:
		fmt.Fprintf(os.Stderr, "called as %q, which is no component: call it through one of the links beside it\n", name)
		os.Exit(2)
	}
}

// As kubectl's own main does it, verbosity first.
func runKubectl() {
	if _, err := logs.GlogSetter(kubectl.GetLogVerbosity(os.Args)); err != nil {
		fmt.Fprintln(os.Stderr, "cannot set the verbosity:", err)
	}
	if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
		util.CheckErr(err)
	}
}
