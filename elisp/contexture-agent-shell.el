;;; contexture-agent-shell.el --- Contexture for agents of agent-shell  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-agent-shell-mode' starts each agent of agent-shell through
;; `contexture acp', which offers the agent our tools, and gives it what
;; you marked with the first prompt and what changed with each later one.
;; Agents that are running already are not affected.

;;; Code:

(require 'contexture-rpc)

(defvar agent-shell-command-prefix)
(defvar contexture-agent-shell-mode)

(defvar contexture-agent-shell--theirs nil
  "Value of `agent-shell-command-prefix' without the mode.")

(defun contexture-agent-shell--prefix (buffer)
  "Return the words before the command of an agent in BUFFER.
The user's own prefix, such as a container's, comes after ours."
  (append (contexture-agent-shell--command)
          (if (functionp contexture-agent-shell--theirs)
              (funcall contexture-agent-shell--theirs buffer)
            contexture-agent-shell--theirs)))

;; The other arguments of the server are those of `serve'.
(defun contexture-agent-shell--options ()
  "Return the arguments of the server that name its state and settings."
  (let ((args contexture-server-args)
        (options nil))
    (while args
      (let ((arg (pop args)))
        (cond ((member arg '("--state" "--config"))
               (setq options (append options (list arg (pop args)))))
              ((string-match-p "\\`--\\(?:state\\|config\\)=" arg)
               (setq options (append options (list arg)))))))
    options))

(defun contexture-agent-shell--command ()
  "Return the command that stands between agent-shell and an agent.
Return nil if there is no program: the agent starts without it."
  (condition-case problem
      (append (butlast (contexture--server-command)
                       (+ 2 (length contexture-server-args)))
              '("acp")
              (contexture-agent-shell--options)
              '("--"))
    (error (message "The agent starts without Contexture: %s"
                    (error-message-string problem))
           nil)))

(defun contexture-agent-shell--update ()
  "Set `agent-shell-command-prefix', or restore it without the mode."
  (let ((is-ours (eq agent-shell-command-prefix #'contexture-agent-shell--prefix)))
    (cond ((and contexture-agent-shell-mode (not is-ours))
           (setq contexture-agent-shell--theirs agent-shell-command-prefix
                 agent-shell-command-prefix #'contexture-agent-shell--prefix))
          ((and is-ours (not contexture-agent-shell-mode))
           (setq agent-shell-command-prefix contexture-agent-shell--theirs
                 contexture-agent-shell--theirs nil)))))

(defun contexture-agent-shell--loaded (_file)
  "Set the prefix of agent-shell once it is loaded."
  (when (boundp 'agent-shell-command-prefix)
    (remove-hook 'after-load-functions #'contexture-agent-shell--loaded)
    (contexture-agent-shell--update)))

;;;###autoload
(define-minor-mode contexture-agent-shell-mode
  "Give the agents of agent-shell what you mark.
Each agent that agent-shell starts gets the tools of Contexture, what you
marked with the first prompt of a session, and later what changed."
  :global t
  :group 'contexture
  (remove-hook 'after-load-functions #'contexture-agent-shell--loaded)
  (cond ((boundp 'agent-shell-command-prefix)
         (contexture-agent-shell--update))
        ((featurep 'agent-shell)
         (setq contexture-agent-shell-mode nil)
         (message "This agent-shell has no `agent-shell-command-prefix'; update it"))
        (contexture-agent-shell-mode
         (unless (locate-library "agent-shell")
           (message "agent-shell is not installed; once it is, its agents \
start through Contexture"))
         (add-hook 'after-load-functions #'contexture-agent-shell--loaded))))

(provide 'contexture-agent-shell)
;;; contexture-agent-shell.el ends here
