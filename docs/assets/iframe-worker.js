// Browsers start no worker for a page that was opened as a file. The search is one: there, it runs in a hidden frame.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    #frame;
    #ready;

    constructor(url) {
      super();
      this.#frame = document.createElement("iframe");
      this.#frame.hidden = true;
      document.body.append(this.#frame);
      const inside = this.#frame.contentWindow;
      inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      inside.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => load(inside, each)), Promise.resolve());
      this.#ready = load(inside, url);
    }

    postMessage(data) {
      const inside = this.#frame.contentWindow;
      this.#ready.then(() => inside.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.#frame.remove();
    }
  };

  function load(inside, url) {
    return new Promise((done, failed) => {
      const script = inside.document.createElement("script");
      script.src = url;
      script.onload = done;
      script.onerror = failed;
      inside.document.body.append(script);
    });
  }
}
