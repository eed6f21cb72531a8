;;; contexture-gptel-tests.el --- Sending the context with gptel  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Against a stand-in for what contexture-gptel.el uses of gptel, always;
;; and against gptel itself, in an Emacs of its own, when GPTEL_DIR,
;; COMPAT_DIR and TRANSIENT_DIR name the folders of these packages.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-gptel)

(defvar contexture-provider--secrets)
(defvar gptel--known-backends)
(defvar gptel-backend)
(defvar gptel-model)
(defvar gptel-prompt-transform-functions)
(defvar gptel-system-prompt)
(defvar gptel-track-media)
(defvar gptel-use-context)

(defvar contexture-gptel-test-sent nil
  "What the stand-in sent: pairs of system message and prompt, newest first.")

(defmacro contexture-gptel-test-with-gptel (&rest body)
  "Run BODY with a stand-in for gptel and a server, mode off before and after."
  (declare (indent 0) (debug t))
  `(let ((gptel-model 'some-model)
         (gptel-prompt-transform-functions (list #'ignore))
         (gptel-system-prompt "Be brief.")
         (gptel-use-context 'system)
         (contexture-gptel-timeout llm-ert-timeout)
         (contexture-gptel-test-sent nil))
     (cl-letf (((symbol-function 'gptel-fsm-info) #'identity)
               ((symbol-function 'gptel-prompt-prefix-string) (lambda () "### ")))
       (contexture-test-with-server
         (unwind-protect (progn ,@body)
           (contexture-gptel-mode -1))))))

(defun contexture-gptel-test-request (prompt)
  "Do what gptel does with PROMPT, a string, in this buffer.
The transforms run in a buffer of their own; when the last one is
done, what they left is sent."
  (let* ((data (generate-new-buffer " *stand-in prompt*"))
         (info (list :data data :buffer (current-buffer)))
         (functions gptel-prompt-transform-functions)
         (left (length functions))
         (done (lambda ()
                 (when (= 0 (cl-decf left))
                   (with-current-buffer data
                     (push (cons gptel-system-prompt (buffer-string))
                           contexture-gptel-test-sent))
                   (kill-buffer data)))))
    (with-current-buffer data
      (setq-local gptel-system-prompt gptel-system-prompt
                  gptel-use-context gptel-use-context)
      (insert prompt))
    (dolist (function functions)
      (with-current-buffer data
        (goto-char (point-max))
        (if (equal (car (func-arity function)) 2)
            (funcall function done info)
          (funcall function info)
          (funcall done))))))

(defun contexture-gptel-test-sent ()
  "Wait until the stand-in has sent something, and return it."
  (llm-ert-wait-for contexture-gptel-test-sent)
  (should (= 1 (length contexture-gptel-test-sent)))
  (pop contexture-gptel-test-sent))

(defun contexture-gptel-test-mark (text)
  "Add TEXT to the context of this buffer and wait until it is there."
  (contexture-request 'add-context
                      (list :manager (contexture-adding-context)
                            :content text :type :text)))

(defconst contexture-gptel-test-rendered
  "## Context\n\n### Text\n```text\nmarked\n```"
  "How the context of one text, \"marked\", is sent.")

;;;; Turning on and off

(ert-deftest contexture-gptel-mode-undoes-itself ()
  (contexture-gptel-test-with-gptel
    (let ((before (copy-sequence gptel-prompt-transform-functions)))
      (contexture-gptel-mode 1)
      (contexture-gptel-mode 1)
      (should (equal gptel-prompt-transform-functions
                     (append before (list #'contexture-gptel--transform))))
      (contexture-gptel-mode -1)
      (should (equal gptel-prompt-transform-functions before)))))

(ert-deftest contexture-gptel-mode-waits-for-gptel ()
  (contexture-gptel-test-with-gptel
    (makunbound 'gptel-prompt-transform-functions)
    (contexture-test-message "gptel is not installed"
      (contexture-gptel-mode 1))
    (should-not (boundp 'gptel-prompt-transform-functions))
    (run-hook-with-args 'after-load-functions "other.el")
    (should (memq #'contexture-gptel--loaded after-load-functions))
    (setq gptel-prompt-transform-functions (list #'ignore))
    (run-hook-with-args 'after-load-functions "gptel.el")
    (should-not (memq #'contexture-gptel--loaded after-load-functions))
    (should (memq #'contexture-gptel--transform gptel-prompt-transform-functions))))

(ert-deftest contexture-gptel-mode-off-before-gptel-is-loaded-leaves-nothing ()
  (contexture-gptel-test-with-gptel
    (makunbound 'gptel-prompt-transform-functions)
    (contexture-gptel-mode 1)
    (contexture-gptel-mode -1)
    (should-not (memq #'contexture-gptel--loaded after-load-functions))
    (should-not (boundp 'gptel-prompt-transform-functions))))

(ert-deftest contexture-gptel-mode-refuses-an-old-gptel ()
  (contexture-gptel-test-with-gptel
    (makunbound 'gptel-prompt-transform-functions)
    (cl-letf* ((featurep (symbol-function 'featurep))
               ((symbol-function 'featurep)
                (lambda (feature &rest more)
                  (or (eq feature 'gptel) (apply featurep feature more)))))
      (contexture-test-user-error "too old" (contexture-gptel-mode 1)))
    (should-not contexture-gptel-mode)))

;;;; What is sent, and where

(ert-deftest contexture-gptel-sends-the-context-after-the-system-message ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-gptel-test-mark "marked")
      (contexture-gptel-mode 1)
      (contexture-test-message "sent the context of buffer .* (1 item, [0-9]+ tokens with headings)"
        (contexture-gptel-test-request "Why?")
        (should (equal (contexture-gptel-test-sent)
                       (cons (concat "Be brief.\n\n" contexture-gptel-test-rendered)
                             "Why?"))))
      (should (equal gptel-system-prompt "Be brief.")))))

(ert-deftest contexture-gptel-sends-the-context-before-the-prompt ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-gptel-test-mark "marked")
      (contexture-gptel-mode 1)
      (setq gptel-use-context 'user)
      (contexture-gptel-test-request
       (concat "### One?\n\n" (propertize "Two." 'gptel 'response) "\n\n### Why?"))
      (should (equal (contexture-gptel-test-sent)
                     (cons "Be brief."
                           (concat "### One?\n\nTwo.\n\n"
                                   contexture-gptel-test-rendered "\n\nWhy?")))))))

(ert-deftest contexture-gptel-begins-a-first-prompt-with-the-context ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-gptel-test-mark "marked")
      (contexture-gptel-mode 1)
      (setq gptel-use-context 'user)
      (contexture-gptel-test-request "### Why?")
      (should (equal (cdr (contexture-gptel-test-sent))
                     (concat contexture-gptel-test-rendered "\n\nWhy?"))))))

(defun contexture-gptel-test-system (system)
  "Return what becomes of SYSTEM, a system message, with a context of \"C\"."
  (with-temp-buffer
    (insert "Why?")
    (setq-local gptel-system-prompt system)
    (contexture-gptel--insert "C")
    (list gptel-system-prompt (buffer-string))))

(ert-deftest contexture-gptel-takes-each-kind-of-system-message ()
  (contexture-gptel-test-with-gptel
    (should (equal (contexture-gptel-test-system "S") '("S\n\nC" "Why?")))
    (should (equal (contexture-gptel-test-system nil) '("C" "Why?")))
    (should (equal (contexture-gptel-test-system '("S" "a" "b"))
                   '(("S\n\nC" "a" "b") "Why?")))
    (should (equal (contexture-gptel-test-system '(nil "a")) '(("C" "a") "Why?")))
    (should (equal (contexture-gptel-test-system #'ignore)
                   '(ignore "C\n\nWhy?")))))

(ert-deftest contexture-gptel-knows-models-without-system-message ()
  (contexture-gptel-test-with-gptel
    (let ((gptel-model (make-symbol "no-system")))
      (put gptel-model :capabilities '(nosystem))
      (should (equal (contexture-gptel-test-system "S") '("S" "C\n\nWhy?"))))))

(ert-deftest contexture-gptel-sends-nothing-if-gptel-shall-send-no-context ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-gptel-test-mark "marked")
      (contexture-gptel-mode 1)
      (setq gptel-use-context nil)
      (contexture-gptel-test-request "Why?")
      (should (equal (contexture-gptel-test-sent) '("Be brief." . "Why?"))))))

(ert-deftest contexture-gptel-sends-the-context-that-the-buffer-works-on ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-request 'add-context
                          '(:manager "chosen" :content "marked" :type :text))
      (setq contexture-context "chosen")
      (contexture-gptel-mode 1)
      (contexture-gptel-test-request "Why?")
      (should (string-search "marked" (car (contexture-gptel-test-sent)))))))

(ert-deftest contexture-gptel-tells-once-of-an-empty-context ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-gptel-mode 1)
      (contexture-test-message "context of buffer .* is empty"
        (contexture-gptel-test-request "Why?")
        (should (equal (contexture-gptel-test-sent) '("Be brief." . "Why?"))))
      (should (= 1 (length contexture-gptel--told)))
      (contexture-gptel-test-request "Why?")
      (contexture-gptel-test-sent)
      (should (= 1 (length contexture-gptel--told))))))

(ert-deftest contexture-gptel-keeps-to-the-budget ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-gptel-test-mark "old text that goes")
      (contexture-gptel-test-mark "marked")
      (contexture-gptel-mode 1)
      (let ((contexture-limit 20))
        (contexture-test-message "(1 item, 1[0-9] tokens with headings; 1 left out to fit the limit)"
          (contexture-gptel-test-request "Why?")
          (should (equal (car (contexture-gptel-test-sent))
                         (concat "Be brief.\n\n" contexture-gptel-test-rendered))))))))

;;;; When it cannot be had

(ert-deftest contexture-gptel-goes-on-when-the-budget-is-too-small ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-gptel-test-mark "marked")
      (contexture-gptel-mode 1)
      (let ((contexture-limit 2))
        (contexture-test-message "is sent without context: a budget of 2 tokens"
          (contexture-gptel-test-request "Why?")
          (should (equal (contexture-gptel-test-sent) '("Be brief." . "Why?"))))))))

(ert-deftest contexture-gptel-goes-on-when-the-server-is-stopped ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-gptel-test-mark "marked")
      (contexture-gptel-mode 1)
      (let ((contexture-gptel-timeout 0.2))
        (contexture-ert-stop-server)
        (contexture-test-message
            "is sent without context: no answer within 0.2 s (see .contexture-gptel-timeout"
          (contexture-gptel-test-request "Why?")
          (should-not contexture-gptel-test-sent) ; Emacs did not wait
          (should (equal (contexture-gptel-test-sent) '("Be brief." . "Why?"))))
        (should (= 0 (hash-table-count
                      (oref (contexture-current-connection) unanswered))))
        (contexture-ert-continue-server)
        (should (eq :pong (contexture-request 'ping)))
        (should-not contexture-gptel-test-sent))))) ; nor is it sent twice

(ert-deftest contexture-gptel-goes-on-when-there-is-no-server ()
  (contexture-gptel-test-with-gptel
    (let ((contexture-server-command "/no/such/program"))
      (contexture-gptel-mode 1)
      (contexture-test-message "is sent without context: There is no program"
        (contexture-gptel-test-request "Why?")
        (should (equal (contexture-gptel-test-sent) '("Be brief." . "Why?")))))))

(ert-deftest contexture-gptel-drops-a-request-whose-prompt-is-gone ()
  (contexture-gptel-test-with-gptel
    (with-temp-buffer
      (contexture-gptel-test-mark "marked")
      (contexture-gptel-mode 1)
      (contexture-gptel-test-request "Why?")
      (kill-buffer " *stand-in prompt*")
      (contexture-test-settle)
      (should-not contexture-gptel-test-sent))))

;; A file in the context may name any other, as [x](~/.ssh/id_rsa) does.
(ert-deftest contexture-gptel-follows-no-link-of-the-context ()
  (defvar gptel-markdown-validate-link)
  (let ((gptel-use-context 'user) (gptel-track-media t)
        (link (lambda (text) (goto-char (point-min)) (search-forward text)
                (list (match-beginning 0) (match-end 0)))))
    (dolist (known '(t nil))
      (with-temp-buffer
        (insert "Why? [own](a.png)")
        (cl-progv (and known '(gptel-markdown-validate-link)) '(always)
          (contexture-gptel--insert "See [theirs](/etc/x)")
          (if (not known) (should-not gptel-track-media)
            (should gptel-track-media)
            (should (funcall gptel-markdown-validate-link (funcall link "[own](a.png)")))
            (should-not (funcall gptel-markdown-validate-link (funcall link "[theirs](/etc/x)")))
            (should-not (funcall gptel-markdown-validate-link nil))))))))

;;;; The real one

(ert-deftest contexture-gptel-works-with-gptel-itself ()
  (let ((folders (mapcar #'getenv '("GPTEL_DIR" "COMPAT_DIR" "TRANSIENT_DIR"))))
    (unless (car folders)
      (ert-skip "GPTEL_DIR is not set"))
    (with-temp-buffer
      (let ((status
             (apply #'call-process
                    (expand-file-name invocation-name invocation-directory)
                    nil t nil "-Q" "--batch"
                    `(,@(cl-loop for folder in (delq nil folders)
                                 append (list "-L" (expand-file-name folder)))
                      ,@(cl-loop for library in '("contexture" "contexture-test-helper")
                                 append (list "-L" (file-name-directory
                                                    (locate-library library))))
                      "-l" "contexture-gptel-real"
                      "-f" "ert-run-tests-batch-and-exit"))))
        (unless (equal status 0)
          (ert-fail (buffer-string)))))))

;;;; Taking models over

;; Stand-ins for gptel's structures, with the slots that are read.
(cl-defstruct (gptel-backend (:constructor contexture-gptel-test--make))
  name host header protocol endpoint key models request-params)
(cl-defstruct (gptel-openai (:include gptel-backend)
                            (:constructor contexture-gptel-test--make-openai)))
(cl-defstruct (gptel-anthropic (:include gptel-backend)
                               (:constructor contexture-gptel-test--make-anthropic)))
(cl-defstruct (gptel-kagi (:include gptel-backend)
                          (:constructor contexture-gptel-test--make-kagi)))

(defun contexture-gptel-test--backends ()
  "Return backends as gptel keeps them."
  (mapcar
   (lambda (it) (cons (gptel-backend-name it) it))
   (list (contexture-gptel-test--make-openai
          :name "Router" :host "openrouter.ai" :protocol "https"
          :endpoint "/api/v1/chat/completions" :key (lambda () "sk-of-gptel")
          :models '(vendor/one vendor/two) :header '(("X-Title" . "mine"))
          :request-params '(:seed 7))
         (contexture-gptel-test--make-anthropic
          :name "Claude" :host "api.anthropic.com" :protocol "https"
          :endpoint "/v1/messages" :key 'gptel-api-key-from-auth-source
          :models '(claude-a claude-b) :header (lambda (_) nil))
         (contexture-gptel-test--make-openai
          :name "Local" :host "localhost:8080" :protocol "http"
          :endpoint "/v1/chat/completions" :models '(any))
         (contexture-gptel-test--make-kagi :name "Kagi" :models '(fastgpt)))))

(defmacro contexture-gptel-test-importing (answer &rest body)
  "Run BODY after `contexture-import-gptel', with ANSWER to its question."
  (declare (indent 1) (debug t))
  `(let* ((gptel--known-backends (contexture-gptel-test--backends))
          (gptel-backend (cdr (assoc "Claude" gptel--known-backends)))
          (gptel-model 'claude-b)
          (contexture-providers '(("Local" :kind ollama :model "old") ("own" :kind ollama)))
          (contexture-provider--secrets (make-hash-table :test #'equal)))
     (cl-letf (((symbol-function 'contexture--y-or-n-p) (lambda (_) ,answer))
               ((symbol-function 'customize-save-variable) #'set)
               ((symbol-function 'gptel--get-api-key) #'funcall))
       (require 'contexture-doctor)
       (unwind-protect
           (progn (contexture-import-gptel) ,@body)
         (when (get-buffer contexture-gptel--import-buffer)
           (kill-buffer contexture-gptel--import-buffer))))))

(ert-deftest contexture-gptel-import-takes-models-over-after-it-showed-them ()
  (contexture-gptel-test-importing t
    (should (equal contexture-providers
                   '(("own" :kind ollama)
                     ("Router" :kind "openai" :model "vendor/one"
                      :base-url "https://openrouter.ai/api/v1"
                      :auth-source (:user "apikey")
                      :headers ((:name "X-Title" :value "mine")) :extra (:seed 7))
                     ("Claude" :kind "anthropic" :model "claude-b"
                      :auth-source (:user "apikey"))
                     ("Local" :kind "openai" :model "any"
                      :base-url "http://localhost:8080/v1"))))
    (should (equal (funcall (gethash '("openrouter.ai" "apikey") contexture-provider--secrets))
                   "sk-of-gptel"))
    (should (= (hash-table-count contexture-provider--secrets) 1))
    (let ((shown (with-current-buffer contexture-gptel--import-buffer (buffer-string))))
      (should (string-search "Kagi: not taken, since Contexture has no such kind" shown))
      (should (string-search "Router: vendor/one, openai, at https://openrouter.ai/api/v1, \
with the key that gptel uses, header X-Title" shown))
      (should-not (string-search "sk-" shown))
      (should-not (string-search "mine" shown)))))

(ert-deftest contexture-gptel-import-that-is-refused-changes-nothing ()
  (contexture-gptel-test-importing nil
    (should (equal (mapcar #'car contexture-providers) '("Local" "own")))
    (should (= (hash-table-count contexture-provider--secrets) 0))))

(ert-deftest contexture-gptel-import-entries-are-settings-of-the-server ()
  (contexture-gptel-test-importing nil
    (contexture-test-with-server
      (dolist (backend (mapcar #'cdr gptel--known-backends))
        (let ((entry (contexture-gptel--entry backend)))
          (when (consp (cdr entry))
            (contexture-request 'configure-provider (contexture-provider--params entry))))))))

;;; contexture-gptel-tests.el ends here
