;;; contexture-list.el --- See and arrange a context  -*- lexical-binding: t; -*-

;; Copyright (C) 2026 The Contexture authors

;; Author: The Contexture authors
;; Keywords: tools, convenience
;; URL: https://github.com/contexture/contexture
;; SPDX-License-Identifier: GPL-3.0-or-later

;;; Commentary:

;; `contexture-list' shows the items of one context with their sources,
;; lines and tokens, and has commands to change them.  The list updates
;; itself when anybody changes the context, and keeps point on the item.
;;
;; No command waits for the server: its effect shows when the answer
;; comes, and if that takes long the echo area says so.

;;; Code:

(require 'contexture-agents)
(require 'contexture-list-draw)
(eval-when-compile (require 'subr-x))

(defconst contexture-list-buffer "*contexture: list*"
  "Name of the buffer that lists a context.")

(autoload 'contexture--call-each "contexture-layers")
(autoload 'contexture-list-copy "contexture-list-item" nil t)
(autoload 'contexture-list-edit "contexture-list-item" nil t)
(autoload 'contexture-list-show "contexture-list-item" nil t)
(autoload 'contexture-list-visit "contexture-list-item" nil t)
(dolist (command '(contexture-list-filter-type contexture-list-filter-state
                   contexture-list-filter-name contexture-list-filter-contents
                   contexture-list-unfilter contexture-list-sort
                   contexture-list-unsort contexture-list-move-up
                   contexture-list-move-down contexture-list-to-special
                   contexture-list-to-general))
  (autoload command "contexture-list-order" nil t))

(defvar contexture-list-mode-map
  (let ((map (make-sparse-keymap)))
    (define-key map (kbd "RET") #'contexture-list-visit)
    (define-key map (kbd "SPC") #'contexture-list-show)
    (define-key map "m" #'contexture-list-mark)
    (define-key map "d" #'contexture-list-flag)
    (define-key map "x" #'contexture-list-execute)
    (define-key map "u" #'contexture-list-unmark)
    (define-key map "U" #'contexture-list-unmark-all)
    (define-key map (kbd "DEL") #'contexture-list-unmark-backward)
    (define-key map "D" #'contexture-list-remove)
    (define-key map "P" #'contexture-list-pin)
    (define-key map "e" #'contexture-list-edit)
    (define-key map "g" #'contexture-list-refresh)
    (define-key map "Z" #'contexture-list-freeze)
    (define-key map "N" #'contexture-send-to-agent)
    (define-key map [remap undo] #'contexture-undo)
    (define-key map [remap undo-only] #'contexture-undo)
    (define-key map [remap undo-redo] #'contexture-redo)
    (define-key map "r" #'contexture-redo)
    (define-key map "w" #'contexture-list-copy)
    (define-key map "v" #'contexture-preview)
    (define-key map "?" #'contexture-list-help)
    (define-key map "S" #'contexture-list-sort)
    (define-key map "o" #'contexture-list-unsort)
    (define-key map (kbd "M-<up>") #'contexture-list-move-up)
    (define-key map (kbd "M-<down>") #'contexture-list-move-down)
    (define-key map (kbd "ESC <up>") #'contexture-list-move-up)
    (define-key map (kbd "ESC <down>") #'contexture-list-move-down)
    (define-key map ">" #'contexture-list-to-special)
    (define-key map "<" #'contexture-list-to-general)
    (define-key map "/t" #'contexture-list-filter-type)
    (define-key map "/s" #'contexture-list-filter-state)
    (define-key map "/n" #'contexture-list-filter-name)
    (define-key map "/c" #'contexture-list-filter-contents)
    (define-key map "//" #'contexture-list-unfilter)
    ;; In `tabulated-list-mode' these set widths; here widths follow the window.
    (define-key map "{" #'undefined)
    (define-key map "}" #'undefined)
    (define-key map [mouse-2] #'contexture-list-visit)
    (define-key map [follow-link] 'mouse-face)
    map)
  "Keymap of `contexture-list-mode'.")

(defvar-local contexture-list--updating nil
  "Non-nil during an update.
The symbol `again' means that the context changed meanwhile, `outdated'
that the list already shows something newer than the coming answer.")

;;;; The list

(define-derived-mode contexture-list-mode tabulated-list-mode "Contexture"
  "Major mode for the items of a buffer's layers, in the order a model sees.
Each layer is a section; a context that you chose has none.

RET visits an item's source, SPC shows its text and `e' edits it.

`m' marks items, and `D', `P' and `w' (remove, pin, copy) then apply to
all marked items.  `d' flags items for removal and `x' removes those
flagged.  `u' removes mark and flag, `U' does so for all items.  You can
undo every change of the context with \\[contexture-undo], and redo it
with \\[contexture-redo].

\\[contexture-list-move-up] and \\[contexture-list-move-down] move an item.
`Z' freezes items, so that they no longer follow their sources.
`N' sends items with the next prompt of an agent; the column of what was
sent appears with the first item that an agent has.
`>' moves items to the next, more special layer, and `<' to the one before.
`S' sorts by a column and `o' goes back to the order of the context.
The keys behind `/' restrict the list to a type, a state, or a match in
name or contents.

\\{contexture-list-mode-map}"
  (contexture--choose-evil-state 'emacs)
  (setq tabulated-list-padding 2
        tabulated-list-use-header-line nil
        tabulated-list-sort-key nil
        truncate-lines t
        contexture-list--tags (make-hash-table :test #'equal)
        revert-buffer-function #'contexture-list-refresh)
  (add-hook 'kill-buffer-hook #'contexture-list--unwatch nil t)
  (add-hook 'window-size-change-functions #'contexture-list--resized nil t))

;;;###autoload
(defun contexture-list (manager)
  "List the items of the context MANAGER, a name or a list of names.
By default these are this buffer's layers, each with a section; with a
prefix argument, choose one context.  If this buffer's context is empty,
another one is offered."
  (interactive (list (contexture--manager-to-show current-prefix-arg)))
  (let ((buffer (get-buffer-create contexture-list-buffer)))
    (with-current-buffer buffer
      (unless (derived-mode-p 'contexture-list-mode)
        (contexture-list-mode))
      (unless (equal manager contexture-manager)
        (setq contexture-manager manager
              contexture-list--items nil
              contexture-list--capacity nil
              contexture-list--filters nil
              contexture-list--loaded nil)
        (clrhash contexture-list--tags)
        (contexture-list--draw)))
    (pop-to-buffer buffer)
    (with-current-buffer buffer
      (contexture-list--watch)
      (contexture-list--update-capacity)
      (contexture-list--update t))))

(defun contexture-list-help ()
  "Show the menu of Contexture's commands, or the keys of the list."
  (interactive)
  (let ((menu 'contexture-menu))        ; which needs a newer Emacs or transient
    (if (commandp menu)
        (call-interactively menu)
      (describe-mode))))

;;;; Following the context

(defun contexture-list--watch ()
  "Make this buffer follow its context."
  (contexture-watch #'contexture-list--changed)
  (contexture-agents--follow (current-buffer) #'contexture-list--draw)
  (add-hook 'contexture-connected-hook #'contexture-list--update-buffer))

(defun contexture-list--unwatch ()
  "Undo what `contexture-list--watch' did."
  (contexture-unwatch #'contexture-list--changed)
  (contexture-agents--unfollow (current-buffer))
  (remove-hook 'contexture-connected-hook #'contexture-list--update-buffer))

(defun contexture-list--changed (method params)
  "Update the list if METHOD with PARAMS says that its context changed."
  (when-let* ((buffer (and (eq method 'context-changed)
                           (get-buffer contexture-list-buffer))))
    (with-current-buffer buffer
      (when (contexture--of-context-p (plist-get params :manager) contexture-manager)
        (when (or (null contexture-list--capacity) ; there was no context yet
                  (member (plist-get params :method)
                          '("configure-manager" "drop-manager" "undo" "redo")))
          (contexture-list--update-capacity))
        (contexture-list--update)))))

(defun contexture-list--update-buffer ()
  "Update the list from any buffer."
  (when-let* ((buffer (get-buffer contexture-list-buffer)))
    (with-current-buffer buffer
      (contexture-list--update-capacity)
      (contexture-list--update))))

(defun contexture-list--update-capacity ()
  "Ask for the capacity of the context; the next update shows it.
Several layers have no common capacity, so none is shown for them."
  (let ((buffer (current-buffer))
        (manager contexture-manager))
    (contexture-request-async
     'list-managers nil
     :error #'ignore                    ; the update that follows shows the error
     :success
     (lambda (all)
       (when (buffer-live-p buffer)
         (with-current-buffer buffer
           (when (and (equal manager contexture-manager) (stringp manager))
             (setq contexture-list--capacity
                   (plist-get (cl-find manager all :test #'equal
                                       :key (lambda (it) (plist-get it :manager)))
                              :max-items)))))))))

(defun contexture-list--update (&optional tell)
  "Fetch this list's items and show them.
With TELL, tell the user if the items do not come soon.  During an update,
changes are only noted, so that many changes in a row cost two updates."
  (if contexture-list--updating
      (unless (eq contexture-list--updating 'outdated)
        (setq contexture-list--updating 'again))
    (setq contexture-list--updating t)
    (let ((buffer (current-buffer))
          (manager contexture-manager)
          (brief (not (assq 'contents contexture-list--filters))))
      (funcall
       (if tell #'contexture--request-patiently #'contexture-request-async)
       'list-items (append (contexture--context-params manager)
                           (list :brief brief))
       :success (lambda (items)
                  (contexture-list--updated buffer manager items))
       :error (lambda (problem)
                (contexture-show-error problem)
                (contexture-list--updated buffer nil nil))))))

(defun contexture-list--updated (buffer manager items)
  "Show in BUFFER the ITEMS fetched for MANAGER; nil means that fetching failed.
Do not show them if the list is already newer."
  (when (buffer-live-p buffer)
    (with-current-buffer buffer
      (let* ((state contexture-list--updating)
             (other (and manager (not (equal manager contexture-manager)))))
        (setq contexture-list--updating nil)
        (unless (or (null manager) other (eq state 'outdated))
          (setq contexture-list--items (contexture-list--keep-same items)
                contexture-list--loaded t)
          (contexture-list--draw))
        (when (or other (memq state '(again outdated)))
          (contexture-list--update))))))

(defun contexture-list--keep-same (items)
  "Return ITEMS, reusing the old objects of unchanged items.
Lines of reused objects need not be made again.  Items of unsaved text are
not reused, since their lines depend on the file too."
  (let ((known (make-hash-table :test #'equal)))
    (dolist (item contexture-list--items)
      (puthash (plist-get item :id) item known))
    (mapcar (lambda (item)
              (let ((old (gethash (plist-get item :id) known)))
                (if (and (equal item old)
                         (not (plist-get (plist-get item :metadata) :modified)))
                    old
                  item)))
            items)))

(defun contexture-list--draw-ahead (items)
  "Show ITEMS, which are newer than the answer to a running update."
  (setq contexture-list--items items)
  (when contexture-list--updating
    (setq contexture-list--updating 'outdated))
  (contexture-list--draw))

;;;; Calls

(cl-defun contexture-list--call (method params success &optional failure)
  "Call METHOD with PARAMS on this list's context.
SUCCESS is called with the result in the list's buffer; FAILURE is called
with the error, after it was shown.  If no answer comes soon, say so."
  (let ((buffer (current-buffer)))
    (cl-flet ((back (function argument)
                (when (buffer-live-p buffer)
                  (with-current-buffer buffer (funcall function argument)))))
      (contexture--call-each
       method (contexture-list--each-params method params)
       (lambda (result) (back success result))
       (lambda (problem)
         (contexture-show-error problem)
         (back (or failure #'ignore) problem))))))

(defun contexture-list--each-params (method params)
  "Return a list of the parameters of each call of METHOD with PARAMS.
In a list of layers, each item is changed in the context that holds it."
  (cond ((or (stringp contexture-manager) (eq method 'list-items))
         (list (append (contexture--context-params contexture-manager) params)))
        ((plist-member params :id)
         (list (append (list :manager (contexture-list--manager-of
                                       (plist-get params :id)))
                       params)))
        (t
         (cl-loop with all = (or (plist-get params :ids)
                                 (mapcar (lambda (item) (plist-get item :id))
                                         contexture-list--items))
                  for (manager . ids) in (seq-group-by #'contexture-list--manager-of all)
                  collect (append (list :manager manager :ids ids)
                                  (cl-loop for (key value) on params by #'cddr
                                           unless (eq key :ids)
                                           nconc (list key value)))))))

(defun contexture-list--manager-of (id)
  "Return the name of the context that holds the item ID."
  (if (stringp contexture-manager) contexture-manager
    (or (plist-get (contexture-list--item-with id) :manager)
        (car (last contexture-manager)))))

(defun contexture-list--change (method params &optional tell)
  "Call METHOD with PARAMS on this list's context, then update the list.
TELL is called with the result in the list's buffer."
  (setq contexture--last-changed
        (contexture-list--manager-of (or (plist-get params :id)
                                         (car (plist-get params :ids)))))
  (contexture-list--call method params
                         (lambda (result)
                           (when tell (funcall tell result))
                           (contexture-list--update))
                         (lambda (_problem) (contexture-list--update))))

;;;; Items

(defun contexture-list--item ()
  "Return the item at point."
  (or (when-let* ((id (tabulated-list-get-id)))
        (contexture-list--item-with id))
      (user-error "There is no item here")))

(defun contexture-list--item-with (id)
  "Return the item with ID, or nil."
  (cl-find id contexture-list--items
           :key (lambda (item) (plist-get item :id)) :test #'equal))

(defun contexture-list--ids-here ()
  "Return the ids of the items in the region, or of the one at point."
  (if (use-region-p)
      (let ((end (region-end)))
        (save-excursion
          (goto-char (region-beginning))
          (forward-line 0)
          (cl-loop while (< (point) end)
                   when (tabulated-list-get-id) collect it
                   do (forward-line))))
    (list (plist-get (contexture-list--item) :id))))

(defun contexture-list--ids ()
  "Return the ids of the items that a command applies to.
They are the ones in the region, else the marked ones, else the one at
point."
  (or (and (not (use-region-p)) (contexture-list--tagged ?>))
      (contexture-list--ids-here)))

;;;; Commands

(defun contexture-list-refresh (&rest _)
  "Read the files of this context again and update the list.
Text that moved within its file is found again; items whose file is gone
are shown as missing."
  (interactive)
  (contexture-list--update-capacity)
  (contexture-list--change 'refresh-items nil
                           #'contexture-list--tell-refreshed))

(defun contexture-list--tell-refreshed (result)
  "Show a message about RESULT of `refresh-items'."
  (let* ((items (plist-get result :items))
         (stale (cl-count :stale items :key (lambda (it) (plist-get it :outcome))))
         (missing (cl-count :missing items
                            :key (lambda (it) (plist-get it :outcome)))))
    (contexture--message "Read %s again%s%s%s"
             (contexture--count (plist-get result :updated) "item")
             (contexture-list--changed-text items)
             (if (> stale 0) (format "; %d could not be found in the file" stale) "")
             (if (> missing 0) (format "; the file of %d is gone" missing) ""))))

(defun contexture-list--changed-text (items)
  "Return a phrase for those of ITEMS that changed or moved, by their names."
  (let ((names (cl-loop for item in items
                        for known = (contexture-list--item-with (plist-get item :id))
                        when (and known (memq (plist-get item :outcome) '(:updated :moved)))
                        collect (format "%s %s"
                                        (contexture--description
                                         (plist-get known :metadata))
                                        (if (eq (plist-get item :outcome) :moved) "moved"
                                          "changed")))))
    (if names
        (concat ": " (string-join (seq-take names 3) ", ")
                (if (nthcdr 3 names) ", ..." ""))
      "")))

(defun contexture-list-freeze ()
  "Make snapshots of the items in the region, the marked ones, or that at point.
If all of them are snapshots, let them follow their files again."
  (interactive)
  (let* ((ids (contexture-list--ids))
         (freeze (cl-some (lambda (id)
                            (plist-get (contexture-list--item-with id) :live))
                          ids)))
    (contexture-list--change
     'freeze-items (list :ids ids :frozen (and freeze t))
     (lambda (_)
       (contexture--message "%s %s" (contexture--count (length ids) "item")
                            (if freeze "frozen: changes of the source no longer count"
                              "following the source again"))))
    (setq deactivate-mark t)))

(defun contexture-list--tag-here (tag)
  "Set the mark TAG on the item at point, or those in the region; move on."
  (contexture-list--tag (contexture-list--ids-here) tag)
  (if (use-region-p)
      (setq deactivate-mark t)
    (forward-line)))

(defun contexture-list-mark ()
  "Mark the item at point, or those in the region, for the next command."
  (interactive)
  (contexture-list--tag-here ?>))

(defun contexture-list-flag ()
  "Flag the item at point, or those in the region, for removal."
  (interactive)
  (contexture-list--tag-here ?D))

(defun contexture-list-unmark ()
  "Remove mark and flag from the item at point, or from all in the region."
  (interactive)
  (contexture-list--tag-here nil))

(defun contexture-list-unmark-backward ()
  "Go to the previous line and remove mark and flag from its item."
  (interactive)
  (forward-line -1)
  (contexture-list--tag (list (plist-get (contexture-list--item) :id)) nil))

(defun contexture-list-unmark-all ()
  "Remove the marks and flags of all items."
  (interactive)
  (let ((ids (hash-table-keys contexture-list--tags)))
    (contexture-list--tag ids nil)
    (contexture--message "%s unmarked" (contexture--count (length ids) "item"))))

(defun contexture-list-execute ()
  "Remove the flagged items.  `contexture-undo' brings them back."
  (interactive)
  (contexture-list--remove
   (or (contexture-list--tagged ?D)
       (user-error "No item is flagged; `d' flags one"))))

(defun contexture-list-remove ()
  "Remove the items in the region, else the marked ones, else the one at point.
`contexture-undo' brings them back."
  (interactive)
  (contexture-list--remove (contexture-list--ids))
  (setq deactivate-mark t))

(defun contexture-list--remove (ids)
  "Remove the items IDS and say how to bring them back.
Their lines vanish when the server has answered."
  (contexture-list--change
   'remove-items (list :ids ids)
   (lambda (result)
     (contexture-list--draw-ahead
      (cl-remove-if (lambda (item) (member (plist-get item :id) ids))
                    contexture-list--items))
     (contexture--message "Removed %s; %s undoes it"
              (contexture--count (plist-get result :removed) "item")
              (substitute-command-keys "\\[contexture-undo]")))))

(defun contexture-list-pin ()
  "Pin the items in the region, else the marked ones, else the one at point.
Pinned items are never evicted.  If all of them are pinned, unpin them."
  (interactive)
  (let* ((ids (contexture-list--ids))
         (pin (not (cl-every (lambda (id)
                               (plist-get (contexture-list--item-with id) :pinned))
                             ids))))
    (contexture-list--change
     'pin-items (list :ids ids :pinned pin)
     (lambda (_)
       (contexture--message "%s %s" (contexture--count (length ids) "item")
                (if pin "pinned" "unpinned"))))
    (setq deactivate-mark t)))

(provide 'contexture-list)
;;; contexture-list.el ends here
