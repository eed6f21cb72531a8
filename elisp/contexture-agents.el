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
  "Hash table from the id of an item to the agent that has it, or nil.
A value is (AGENT . TIME) for an item that was sent, or (next . AGENT) for
one that waits.  It is nil if nothing was ever sent to an agent.")

(defvar contexture-agents--followers nil
  "Alist from buffers that show what agents have to functions that redraw.")

(defvar contexture-agents--asking nil
  "Non-nil while the server is asked; `again' if something changed meanwhile.")

;;;; Following

(defun contexture-agents--follow (buffer redraw)
  "Call REDRAW in BUFFER, without arguments, whenever agents get something."
  (unless contexture-agents--followers
    (contexture-agents--forget)
    (contexture-watch #'contexture-agents--told '(agents-changed))
    (add-hook 'contexture-connected-hook #'contexture-agents--update)
    (add-hook 'contexture-disconnected-hook #'contexture-agents--forget))
  (setf (alist-get buffer contexture-agents--followers) redraw)
  (contexture-agents--update))

(defun contexture-agents--unfollow (buffer)
  "Stop calling a function in BUFFER whenever agents get something."
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
  "Ask again if METHOD announces a change of agents."
  (when (eq method 'agents-changed)
    (contexture-agents--update)))

(defun contexture-agents--update ()
  "Ask the server about agents.  During a call, changes are only noted."
  (if contexture-agents--asking
      (setq contexture-agents--asking 'again)
    (setq contexture-agents--asking t)
    (contexture-request-async
     'list-agents '(:brief t)
     :success #'contexture-agents--answered
     ;; An earlier server knows no agents.
     :error (lambda (_) (contexture-agents--answered nil)))))

(defun contexture-agents--answered (answer)
  "Keep ANSWER, and redraw the buffers that show it."
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
  "Return the value of `contexture-agents--table' for ANSWER."
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
  "Return a name for SESSION, of `list-agents', with its project."
  (let ((project (plist-get session :project))
        (id (plist-get session :agent-session)))
    (contexture--visible
     (concat (plist-get session :agent)
             (if (equal id "") ""
               (concat " " (truncate-string-to-width id 16 nil nil t)))
             (if (equal project "") ""
               (concat " in " (file-name-nondirectory
                               (directory-file-name project))))))))

;;;; Sending with the next prompt

;;;###autoload
(defun contexture-send-to-agent (&optional choose)
  "Send the region, or the item at point, with the next prompt of an agent.
It goes once, also if the agent has it already, and with whichever agent
of this project is prompted first; outside of a project, with any.  With
a prefix argument CHOOSE, choose an agent or one of its sessions.

The region is added to this buffer's context first.  In a list of items,
send the marked items, or the one at point.  If they wait already, they
no longer do; `contexture-undo' right after it does the same."
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
  "Return ITEM of MANAGER in the form for `contexture-agents--toggle'."
  (list :manager (or manager (contexture-current-manager))
        :id (plist-get item :id)
        :name (contexture--description (plist-get item :metadata))))

(defun contexture-agents--target (choose)
  "Return the receiver as (NAME . PARAMS); ask for it if CHOOSE."
  (if choose
      (contexture-agents--read-target)
    (if-let* ((root (and (not (file-remote-p default-directory))
                         (contexture--project-root))))
        (list (format "an agent in %s" (file-name-nondirectory (directory-file-name root)))
              :directory root)
      (list "an agent"))))

(defun contexture-agents--read-target ()
  "Ask for the receiver, and return it as (NAME . PARAMS)."
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
WISHES are plists with `:manager', `:id' and `:name'."
  (contexture--request-patiently
   'list-agents '(:brief t)
   :success
   (lambda (answer)
     (let* ((ids (contexture--pluck :id wishes))
            (waiting (cl-remove-if-not (lambda (it) (member (plist-get it :id) ids))
                                       (plist-get answer :waiting))))
       (if (cl-subsetp ids (contexture--pluck :id waiting) :test #'equal)
           (contexture-request-batch-async
            (mapcar (lambda (it) `(cancel-push :number ,(plist-get it :number)))
                    waiting)
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
  "Value of `agent-shell-command-prefix' without the mode.")

(defun contexture-agent-shell--prefix (buffer)
  "Return the words before the command of an agent in BUFFER.
The user's own prefix, such as a container's, comes after ours."
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

(provide 'contexture-agents)
;;; contexture-agents.el ends here
