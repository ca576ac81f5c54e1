// A browser starts no worker for a page that it reads from a disk. The search of the docs needs one: there, and only
// there, it gets a hidden frame with the same manners.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.document.open();
      inside.postMessage = (data) => setTimeout(() => this.tell(data));
      inside.document.write(`<script src="${new URL(url, location)}"></` + "script>");
      inside.document.close();
      this.ready = new Promise((resolve) => inside.addEventListener("load", resolve));
    }
    tell(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }
    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow?.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
