;;; contexture-gptel-tests.el --- Sending the context with gptel  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; Against a stand-in for what contexture-gptel.el uses of gptel, always;
;; and against gptel itself, in an Emacs of its own, when GPTEL_DIR,
;; COMPAT_DIR and TRANSIENT_DIR name the folders of these packages.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-gptel)

(defvar gptel-model)
(defvar gptel-prompt-transform-functions)
(defvar gptel-system-prompt)
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
         (contexture-gptel-timeout contexture-ert-timeout)
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
  (contexture-ert-wait-for contexture-gptel-test-sent)
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
      (contexture-test-message "sent the context of buffer .* (1 item, [0-9]+ tokens)"
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
        (contexture-test-message "(1 item, 1[0-9] tokens; 1 left out to fit the budget)"
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

;;; contexture-gptel-tests.el ends here
