;;; contexture-agent-shell-tests.el --- Tests with agent-shell  -*- lexical-binding: t; -*-

;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; The mode sets the prefix of agent-shell's commands, and restores it.

;;; Code:

(require 'contexture-test-helper)
(require 'contexture-agents)

(defvar agent-shell-command-prefix)

(defmacro contexture-agent-shell-test-with (prefix &rest body)
  "Run BODY with PREFIX as the user's own prefix of agent-shell."
  (declare (indent 1) (debug t))
  `(let ((contexture-agent-shell--theirs nil)
         (contexture-server-command "sh")
         (contexture-server-args '("--tcp" "0" "--state" "/tmp/x")))
     (unwind-protect
         (progn (defvar agent-shell-command-prefix)
                (setq agent-shell-command-prefix ,prefix)
                ,@body)
       (setq contexture-agent-shell-mode nil)
       (makunbound 'agent-shell-command-prefix))))

(defun contexture-agent-shell-test-prefix ()
  "Return the words after the program in the prefix of a command."
  (cdr (funcall agent-shell-command-prefix (current-buffer))))

(ert-deftest contexture-agent-shell-starts-agents-through-the-proxy ()
  (contexture-agent-shell-test-with nil
    (contexture-agent-shell-mode)
    (should (equal (contexture-agent-shell-test-prefix)
                   '("acp" "--state" "/tmp/x" "--")))
    (should (file-executable-p (car (funcall agent-shell-command-prefix nil))))
    ;; Once more changes nothing.
    (contexture-agent-shell-mode)
    (contexture-agent-shell-mode -1)
    (should-not agent-shell-command-prefix)))

(ert-deftest contexture-agent-shell-keeps-the-prefix-of-the-user ()
  (dolist (theirs (list '("docker" "exec") (lambda (_) '("docker" "exec"))))
    (contexture-agent-shell-test-with theirs
      (contexture-agent-shell-mode)
      (should (equal (contexture-agent-shell-test-prefix)
                     '("acp" "--state" "/tmp/x" "--" "docker" "exec")))
      (contexture-agent-shell-mode -1)
      (should (eq agent-shell-command-prefix theirs))))
  ;; What the user sets meanwhile stays.
  (contexture-agent-shell-test-with nil
    (contexture-agent-shell-mode)
    (setq agent-shell-command-prefix '("nice"))
    (contexture-agent-shell-mode -1)
    (should (equal agent-shell-command-prefix '("nice")))))

(ert-deftest contexture-agent-shell-lets-agents-start-without-a-program ()
  (contexture-agent-shell-test-with '("nice")
    (let ((contexture-server-command "no-such-program"))
      (contexture-agent-shell-mode)
      (should (equal (funcall agent-shell-command-prefix nil) '("nice"))))))

(ert-deftest contexture-agent-shell-says-that-agent-shell-is-missing ()
  (skip-unless (not (locate-library "agent-shell")))
  (let ((said nil))
    (unwind-protect
        (progn
          (cl-letf (((symbol-function 'message)
                     (lambda (format &rest args)
                       (when format (push (apply #'format format args) said)))))
            (contexture-agent-shell-mode))
          (should (string-match-p "not installed" (string-join said " ")))
          ;; It is installed and loaded later.
          (setq agent-shell-command-prefix '("nice"))
          (run-hook-with-args 'after-load-functions "agent-shell.el")
          (should (eq agent-shell-command-prefix #'contexture-agent-shell--prefix))
          (should-not (memq #'contexture-agent-shell--loaded after-load-functions))
          (contexture-agent-shell-mode -1)
          (should (equal agent-shell-command-prefix '("nice"))))
      (contexture-agent-shell-mode -1)
      (makunbound 'agent-shell-command-prefix))))

(provide 'contexture-agent-shell-tests)
;;; contexture-agent-shell-tests.el ends here
