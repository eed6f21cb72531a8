;;; contexture-agents.el --- Coding agents and their context  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; What agents were sent and when, items that go with their next prompt,
;; and agent-shell, whose agents can get the context of a project.

;;; Code:

(require 'contexture)
(eval-when-compile (require 'subr-x))

(defvar agent-shell-command-prefix)
(defvar contexture-agent-shell-mode)
(autoload 'contexture-list--wishes "contexture-list")
(autoload 'contexture-sets--read-item "contexture-list")

;;; What agents have, and what they get next

;; Knows what the sessions of agents were sent, for the list and the
;; dashboard: the server tells of every change, so nothing is asked for at
;; fixed times, and nothing at all while no buffer shows it.
;;
;; `contexture-send-to-agent' lets an item or the region go with the next
;; prompt of an agent, once.

(defvar contexture-agents--known nil
  "The last result of `list-agents', or nil.")

(defvar contexture-agents--table nil
  "Hash table from an item's id to the agent that has it or gets it next, or nil.
A value is (AGENT . TIME) for an item that was sent, or (next . AGENT) for
one that waits for a prompt; AGENT is then \"\" if any agent may take it.
The variable is nil if nothing was sent and nothing waits.")

(defvar contexture-agents--followers nil
  "Alist of (BUFFER . FUNCTION); FUNCTION redraws what agents have in BUFFER.")

(defvar contexture-agents--asking nil
  "Non-nil during a call of `list-agents'; `again' if agents changed meanwhile.")

;;;; Following

(defun contexture-agents--follow (buffer redraw)
  "Call REDRAW in BUFFER, without arguments, when an agent or its items change."
  (unless contexture-agents--followers
    (contexture-agents--forget)
    (contexture-watch #'contexture-agents--told '(agents-changed))
    (add-hook 'contexture-connected-hook #'contexture-agents--update)
    (add-hook 'contexture-disconnected-hook #'contexture-agents--forget))
  (setf (alist-get buffer contexture-agents--followers) redraw)
  (contexture-agents--update))

(defun contexture-agents--unfollow (buffer)
  "No longer call the function that redraws BUFFER."
  (setq contexture-agents--followers
        (assq-delete-all buffer contexture-agents--followers))
  (unless contexture-agents--followers
    (contexture-unwatch #'contexture-agents--told)
    (remove-hook 'contexture-connected-hook #'contexture-agents--update)
    (remove-hook 'contexture-disconnected-hook #'contexture-agents--forget)))

(defun contexture-agents--forget ()
  "Forget all agents, since the next server may know others."
  (setq contexture-agents--known nil
        contexture-agents--table nil
        contexture-agents--asking nil))

(defun contexture-agents--told (method _params)
  "Ask about agents again if METHOD, a notification, is `agents-changed'."
  (when (eq method 'agents-changed)
    (contexture-agents--update)))

(defun contexture-agents--update ()
  "Ask the server about agents; during such a call, only note to ask again."
  (if contexture-agents--asking
      (setq contexture-agents--asking 'again)
    (setq contexture-agents--asking t)
    (contexture-request-async
     'list-agents '(:brief t)
     :success #'contexture-agents--answered
     :error (lambda (_) (contexture-agents--answered nil)))))

(defun contexture-agents--answered (answer)
  "Keep ANSWER if it is new, and redraw the buffers that show it."
  (let ((again (eq contexture-agents--asking 'again))
        (changed (not (equal answer contexture-agents--known))))
    (setq contexture-agents--asking nil)
    (when (and changed contexture-agents--followers)
      (setq contexture-agents--known answer
            contexture-agents--table (contexture-agents--make-table answer))
      (pcase-dolist (`(,buffer . ,redraw) contexture-agents--followers)
        (if (buffer-live-p buffer)
            (with-current-buffer buffer (funcall redraw))
          (contexture-agents--unfollow buffer))))
    (when (and again contexture-agents--followers)
      (contexture-agents--update))))

(defun contexture-agents--make-table (answer)
  "Return `contexture-agents--table' for ANSWER, a result of `list-agents'."
  (let ((table (make-hash-table :test #'equal)))
    (dolist (it (plist-get answer :sent))
      (puthash (plist-get it :id) (cons (plist-get it :agent) (plist-get it :at)) table))
    (dolist (it (plist-get answer :waiting))
      (puthash (plist-get it :id) (cons 'next (plist-get it :agent)) table))
    (and (> (hash-table-count table) 0) table)))

;;;; Words

(defun contexture-agents--short (agent)
  "Return the first word of AGENT, the name of an agent."
  (contexture--visible (car (split-string agent "[-_ ]" t))))

(defun contexture-agents--session-name (session)
  "Return a phrase for SESSION, one of `list-agents': agent, id and project."
  (let ((project (plist-get session :project))
        (id (plist-get session :agent-session)))
    (contexture--visible
     (concat (plist-get session :agent)
             (if (equal id "") ""
               (concat " " (truncate-string-to-width id 16 nil nil t)))
             (if (equal project "") ""
               (concat " in " (contexture--last-name project)))))))

;;;; Sending with the next prompt

;;;###autoload
(defun contexture-send-to-agent (&optional choose)
  "Send the region, or the item at point, with the next prompt of an agent.
In a project, the agent of it that you prompt first gets the item;
elsewhere, any agent.  The agent gets the item once, even if it has it
already.  With a prefix argument CHOOSE, choose an agent or one of its
sessions.

The region is added to this buffer's context first.  In a list of items,
send the marked items, or the one at point.  If all of them wait for a
prompt already, cancel that; `contexture-undo' right after it does the same."
  (interactive "P")
  (let ((target (contexture-agents--target choose)))
    (cond ((derived-mode-p 'contexture-list-mode)
           (contexture-agents--toggle (contexture-list--wishes) target)
           (setq deactivate-mark t))
          ((or (use-region-p) (contexture-sources--block-selection))
           (contexture--add (contexture-agents--region) nil
                            (lambda (manager item)
                              (contexture-agents--toggle
                               (list (contexture-agents--wish manager item)) target)))
           (setq deactivate-mark t))
          (t
           (let ((item (contexture-sets--read-item "Send item" nil)))
             (contexture-agents--toggle
              (list (contexture-agents--wish (plist-get item :manager) item))
              target))))))

(defun contexture-agents--region ()
  "Return parameters that add the text of the region, or the rectangle."
  (pcase (contexture-sources--block-selection)
    (`(,beg ,end . ,_) (contexture-sources--capture-rectangle beg end))
    (_ (contexture--capture (region-beginning) (region-end) :region))))

(defun contexture-agents--wish (manager item)
  "Return a plist that names ITEM of MANAGER, for `contexture-agents--toggle'.
MANAGER nil means the current context."
  (list :manager (or manager (contexture-adding-context))
        :id (plist-get item :id)
        :name (contexture--description (plist-get item :metadata))))

(defun contexture-agents--target (choose)
  "Return who gets the next items, as (NAME . PARAMS); ask the user if CHOOSE.
NAME is for messages; PARAMS are those parameters of `push-next' that
choose the receiver."
  (if choose
      (contexture-agents--read-target)
    (if-let* ((root (and (not (contexture--remote-p default-directory))
                         (contexture--project-root))))
        (list (format "an agent in %s" (contexture--last-name root))
              :directory root)
      (list "an agent"))))

(defun contexture-agents--read-target ()
  "Ask who gets the next items; return (NAME . PARAMS).
They are as in `contexture-agents--target'."
  (let* ((sessions (plist-get (contexture--ask 'list-agents '(:brief t)) :sessions))
         (agents (delete-dups (contexture--pluck :agent sessions)))
         (targets
          (append '(("any agent"))
                  (mapcar (lambda (agent)
                            (list (contexture--visible agent) :agent agent))
                          agents)
                  (mapcar (lambda (it)
                            (list (contexture-agents--session-name it)
                                  :agent (plist-get it :agent)
                                  :agent-session (plist-get it :agent-session)))
                          sessions)))
         (name (completing-read (format-prompt "Send to" "any agent")
                                (contexture--table (mapcar #'car targets) 'contexture-agent)
                                nil t nil nil "any agent")))
    (assoc name targets)))

(defun contexture-agents--toggle (wishes target)
  "Send the items of WISHES to TARGET; if all wait already, cancel that.
WISHES are plists with `:manager', `:id' and `:name'.  TARGET is a value of
`contexture-agents--target'."
  (contexture--request-patiently
   'list-agents '(:brief t)
   :success
   (lambda (answer)
     (let* ((ids (contexture--pluck :id wishes))
            (waiting (cl-remove-if-not (lambda (it) (member (plist-get it :id) ids))
                                       (plist-get answer :waiting))))
       (if (cl-subsetp ids (contexture--pluck :id waiting) :test #'equal)
           (contexture-request-async
            'push-next (list :cancel (contexture--pluck :number waiting))
            :success (lambda (_)
                       (contexture--message "%s no longer %s for a prompt"
                                            (contexture-agents--names wishes)
                                            (if (cdr wishes) "wait" "waits"))))
         (contexture-agents--send wishes target))))))

(defun contexture-agents--send (wishes target)
  "Send the items of WISHES with the next prompt of TARGET."
  (pcase-let ((`(,name . ,params) target))
    (setq contexture--last-changed (plist-get (car (last wishes)) :manager))
    (contexture-request-batch-async
     (mapcar (lambda (wish)
               `(push-next :manager ,(plist-get wish :manager)
                           :id ,(plist-get wish :id) ,@params))
             wishes)
     :atomic t
     :success (lambda (_)
                (contexture--message
                 "%s %s with the next prompt of %s; the same command cancels it"
                 (contexture-agents--names wishes) (if (cdr wishes) "go" "goes") name)))))

(defun contexture-agents--names (wishes)
  "Return a phrase for the items of WISHES."
  (if (cdr wishes)
      (contexture--count (length wishes) "item")
    (plist-get (car wishes) :name)))

;;; Contexture for agents of agent-shell

;; `contexture-agent-shell-mode' starts each agent of agent-shell through
;; `contexture acp', which offers the agent our tools, and gives it what
;; you marked with the first prompt and what changed with each later one.
;; Agents that are running already are not affected.

(defvar contexture-agent-shell--theirs nil
  "Value that `agent-shell-command-prefix' has while the mode is off.")

(defun contexture-agent-shell--prefix (buffer)
  "Return what comes before the command of an agent in BUFFER, a list of words.
The user's own prefix, such as a container's, comes after ours.  Without the
server's program there is only the user's."
  (append (condition-case problem
              (append (butlast (contexture--server-command)
                               (+ 2 (length contexture-server-args)))
                      '("acp")
                      (contexture-agent-shell--options)
                      '("--"))
            (error (message "The agent starts without Contexture: %s"
                            (error-message-string problem))
                   nil))
          (if (functionp contexture-agent-shell--theirs)
              (funcall contexture-agent-shell--theirs buffer)
            contexture-agent-shell--theirs)))

;; The other arguments of the server are those of `serve'.
(defun contexture-agent-shell--options ()
  "Return the options of `contexture-server-args' for the state and settings."
  (let ((args contexture-server-args)
        (options nil))
    (while args
      (let ((arg (pop args)))
        (cond ((member arg '("--state" "--config"))
               (setq options (append options (list arg (pop args)))))
              ((string-match-p "\\`--\\(?:state\\|config\\)=" arg)
               (setq options (append options (list arg)))))))
    options))

(defun contexture-agent-shell--update ()
  "Set `agent-shell-command-prefix', or restore it if the mode is off."
  (let ((is-ours (eq agent-shell-command-prefix #'contexture-agent-shell--prefix)))
    (cond ((and contexture-agent-shell-mode (not is-ours))
           (setq contexture-agent-shell--theirs agent-shell-command-prefix
                 agent-shell-command-prefix #'contexture-agent-shell--prefix))
          ((and is-ours (not contexture-agent-shell-mode))
           (setq agent-shell-command-prefix contexture-agent-shell--theirs
                 contexture-agent-shell--theirs nil)))))

(defun contexture-agent-shell--loaded (_file)
  "Set the prefix of agent-shell if agent-shell was just loaded."
  (when (boundp 'agent-shell-command-prefix)
    (remove-hook 'after-load-functions #'contexture-agent-shell--loaded)
    (contexture-agent-shell--update)))

;;;###autoload
(define-minor-mode contexture-agent-shell-mode
  "Give the agents of agent-shell what you mark.
Each agent that agent-shell starts gets Contexture's tools.  The first
prompt to an agent brings what you marked, and each later one what changed."
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

(provide 'contexture-agents)
;;; contexture-agents.el ends here
